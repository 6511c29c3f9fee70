#pragma once

#include <algorithm>
#include <array>
#include <limits>
#include <vector>

#include "doppler/ids.h"
#include "doppler/units.h"

namespace doppler {

// A priority queue of (time, id), smallest first, made for discrete-event simulation: most new entries are
// later than most old ones and few are pending. The nearest entries stand sorted in a small buffer, where
// insertion from the far end moves only a few; when the buffer is full its far half goes to a binary heap,
// which bounds the work on wide graphs. On the published graphs this is twice as fast as one binary heap.
class EventQueue {
 public:
  struct Entry {
    Seconds time;
    std::uint32_t id;
    std::uint32_t payload;  // whatever the loop wants to find again
  };

  // Holds up to `capacity` entries at a time without allocating. Times must not be negative.
  explicit EventQueue(std::size_t capacity) {
    far_.reserve(capacity);
    time_[0] = kBeforeAll;
    time_[1] = kAfterAll.time;
  }

  bool empty() const { return head_ == tail_; }
  Seconds top_time() const { return time_[head_]; }  // infinity if empty
  std::uint32_t top_id() const { return static_cast<std::uint32_t>(key_[head_] >> 32); }

  [[gnu::always_inline]] void push(Seconds time, std::uint32_t id, std::uint32_t payload = 0) {
    const std::uint64_t key = std::uint64_t{id} << 32 | payload;
    if (tail_ == kNear || !before(time, key, far_min_.time, far_min_.key)) [[unlikely]]
      if (push_crowded({time, key})) return;
    std::size_t place = tail_++;
    for (; before(time, key, time_[place - 1], key_[place - 1]); --place) {  // ends at kBeforeAll
      time_[place] = time_[place - 1];
      key_[place] = key_[place - 1];
    }
    time_[place] = time;
    key_[place] = key;
  }

  [[gnu::always_inline]] Entry pop() {
    const Entry entry{time_[head_], static_cast<std::uint32_t>(key_[head_] >> 32),
                      static_cast<std::uint32_t>(key_[head_])};
    time_[head_++] = kBeforeAll;
    if (head_ == tail_) {
      head_ = tail_ = 1;
      time_[1] = kAfterAll.time;
      if (!far_.empty()) [[unlikely]]
        refill();
    }
    return entry;
  }

 private:
  struct Far {
    Seconds time;
    std::uint64_t key;
  };
  static constexpr std::size_t kNear = 256;
  static constexpr Seconds kBeforeAll = -1.0;
  static constexpr Far kAfterAll{std::numeric_limits<Seconds>::infinity(), 0};

  static bool before(Seconds time, std::uint64_t key, Seconds other_time, std::uint64_t other_key) {
    return time < other_time || (time == other_time && key < other_key);
  }
  static bool later(const Far& a, const Far& b) { return before(b.time, b.key, a.time, a.key); }

  // Makes room in the buffer; true if the entry belongs to the far heap, where it then is.
  [[gnu::noinline]] bool push_crowded(Far entry) {
    if (tail_ == kNear) {
      std::copy(time_.begin() + head_, time_.begin() + tail_, time_.begin() + 1);
      std::copy(key_.begin() + head_, key_.begin() + tail_, key_.begin() + 1);
      tail_ -= head_ - 1;
      head_ = 1;
      for (; tail_ > kNear / 2; --tail_) push_far({time_[tail_ - 1], key_[tail_ - 1]});
    }
    if (before(entry.time, entry.key, far_min_.time, far_min_.key)) return false;
    push_far(entry);
    return true;
  }
  void push_far(Far entry) {
    far_.push_back(entry);
    std::push_heap(far_.begin(), far_.end(), later);
    far_min_ = far_.front();
  }
  [[gnu::noinline]] void refill() {
    for (; tail_ < kNear / 4 && !far_.empty(); ++tail_) {
      std::pop_heap(far_.begin(), far_.end(), later);
      time_[tail_] = far_.back().time;
      key_[tail_] = far_.back().key;
      far_.pop_back();
    }
    far_min_ = far_.empty() ? kAfterAll : far_.front();
  }

  // Sorted in [head_, tail_), kBeforeAll before head_. Times and keys stand apart because a 16-byte copy of
  // an entry just written in two halves would stall on every insertion.
  std::array<Seconds, kNear + 1> time_;
  std::array<std::uint64_t, kNear + 1> key_{};  // id, payload
  std::size_t head_ = 1, tail_ = 1;
  std::vector<Far> far_;     // binary heap of entries that follow all near ones
  Far far_min_ = kAfterAll;  // its top
};

}  // namespace doppler
