#pragma once

#include <atomic>
#include <cstdint>
#include <vector>

namespace doppler {

// Messages from one thread to one other. How many a run sends at most is known from the placement, so a log is an array
// that is written once from front to back and a count that says how far: no lock, no wrap-around, no lost message.
// Internal to doppler/engine.
class MessageLog {
 public:
  // Forgets all messages; between runs only.
  void prepare(std::size_t most) {
    if (messages_.size() < most) messages_.resize(most);
    sent_ = 0;
    received_.store(0, std::memory_order_relaxed);
    published_.store(0, std::memory_order_relaxed);
  }

  // The sender calls it. It is sequentially consistent, so that it is ordered before the look whether the receiver
  // sleeps (Parking).
  void send(std::uint32_t message) {
    messages_[sent_++] = message;
    published_.store(sent_, std::memory_order_seq_cst);
  }

  // Any thread may ask whether there are messages that were not received.
  bool has_mail() const {
    return published_.load(std::memory_order_seq_cst) != received_.load(std::memory_order_relaxed);
  }
  // The receiver calls it, from one thread at a time.
  template <typename Visit>
  void receive(Visit visit) {
    const std::uint32_t last = published_.load(std::memory_order_acquire);
    std::uint32_t next = received_.load(std::memory_order_relaxed);
    if (next == last) return;
    while (next < last) visit(messages_[next++]);
    received_.store(last, std::memory_order_relaxed);
  }

 private:
  std::vector<std::uint32_t> messages_;
  // What each side writes has a cache line of its own.
  alignas(64) std::uint32_t sent_ = 0;
  alignas(64) std::atomic<std::uint32_t> published_{0};
  alignas(64) std::atomic<std::uint32_t> received_{0};
};

}  // namespace doppler
