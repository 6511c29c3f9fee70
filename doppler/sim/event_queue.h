#pragma once

#include <algorithm>
#include <vector>

#include "doppler/base/ids.h"
#include "doppler/base/units.h"

namespace doppler {

// A priority queue of (time, id), smallest first, made for discrete-event simulation: most new entries are
// later than most old ones and few are pending. The nearest entries stand sorted in a buffer, where insertion
// from the far end moves only a few; the others wait in a binary heap, which bounds the work on wide graphs.
// On the published graphs this is twice as fast as one binary heap.
class EventQueue {
 public:
  struct Entry {
    Seconds time;
    std::uint32_t id;
    bool operator<(const Entry& other) const {
      return time < other.time || (time == other.time && id < other.id);
    }
  };

  // Holds up to `capacity` entries at a time without allocating.
  explicit EventQueue(std::size_t capacity) : near_(kNear * 8 + 1) { far_.reserve(capacity); }

  bool empty() const { return head_ == tail_; }
  void clear() {
    head_ = tail_ = kFirst;
    far_.clear();
  }
  const Entry& top() const { return near_[head_]; }

  void push(Seconds time, std::uint32_t id) {
    const Entry entry{time, id};
    if (tail_ - head_ >= kNear || !far_.empty()) [[unlikely]] {
      // The far heap holds only entries that are not smaller than the last near one.
      if (tail_ - head_ >= kNear && entry < near_[tail_ - 1]) {
        push_far(near_[--tail_]);
      } else if (tail_ - head_ >= kNear || far_.front() < entry) {
        push_far(entry);
        return;
      }
    }
    if (tail_ == near_.size()) [[unlikely]]
      slide_to_front();
    std::size_t place = tail_++;
    near_[head_ - 1] = {-1.0, 0};  // a sentinel: times are not negative
    for (; entry < near_[place - 1]; --place) near_[place] = near_[place - 1];
    near_[place] = entry;
  }

  Entry pop() {
    const Entry entry = near_[head_++];
    if (head_ == tail_) {
      head_ = tail_ = kFirst;
      if (!far_.empty()) [[unlikely]]
        refill();
    }
    return entry;
  }

 private:
  static constexpr std::size_t kNear = 64;  // measured: 32 to 128 are alike on the published graphs
  static constexpr std::size_t kFirst = 1;  // room for the sentinel

  static bool later(const Entry& a, const Entry& b) { return b < a; }
  void push_far(const Entry& entry) {
    far_.push_back(entry);
    std::push_heap(far_.begin(), far_.end(), later);
  }
  void slide_to_front() {
    std::copy(near_.begin() + static_cast<std::ptrdiff_t>(head_),
              near_.begin() + static_cast<std::ptrdiff_t>(tail_), near_.begin() + kFirst);
    tail_ -= head_ - kFirst;
    head_ = kFirst;
  }
  void refill() {
    // Half full, so that the next insertions still find room here.
    for (std::size_t count = 0; count < kNear / 2 && !far_.empty(); ++count) {
      std::pop_heap(far_.begin(), far_.end(), later);
      near_[tail_++] = far_.back();
      far_.pop_back();
    }
  }

  std::vector<Entry> near_;  // sorted in [head_, tail_)
  std::vector<Entry> far_;   // binary heap
  std::size_t head_ = kFirst, tail_ = kFirst;
};

}  // namespace doppler
