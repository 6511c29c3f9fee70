#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

namespace doppler {

// Where threads sleep that have nothing to do. Whoever publishes something for a thread wakes it afterwards; a thread
// that is about to sleep looks once more. Both sides are sequentially consistent, so that one of them sees the other
// and no wake-up is lost.
//
// The last thread to lie down knows that nobody is left to wake the others: a deadlock is found at once and for
// certain, not by waiting. Internal to doppler/engine.
class Parking {
 public:
  explicit Parking(unsigned threads) : threads_(threads), places_(new Place[threads]) {}

  // Everybody is awake again; between runs only.
  void clear() {
    asleep_.store(0);
    for (unsigned i = 0; i < threads_; ++i) places_[i].parked.store(0);
  }

  // Sleeps until woken, unless `has_work()` holds already. Returns false if everybody sleeps or has left, so that
  // nobody will come.
  template <typename HasWork>
  bool park(unsigned thread, HasWork has_work) {
    std::atomic<std::uint32_t>& parked = places_[thread].parked;
    parked.store(1, std::memory_order_seq_cst);
    if (has_work()) {
      // Somebody may have woken us meanwhile and counted us as awake again; then we must count ourselves first.
      if (parked.exchange(0, std::memory_order_seq_cst) == 0) asleep_.fetch_add(1);
      return true;
    }
    if (one_more_asleep()) return false;
    while (parked.load(std::memory_order_acquire) == 1) sleep_while_parked(parked, kForever);
    return true;
  }
  // Sleeps at most that long. Whoever will get up by itself does not count as asleep.
  template <typename HasWork>
  void nap(unsigned thread, std::int64_t nanoseconds, HasWork has_work) {
    std::atomic<std::uint32_t>& parked = places_[thread].parked;
    parked.store(1, std::memory_order_seq_cst);
    if (!has_work()) sleep_while_parked(parked, nanoseconds);
    if (parked.exchange(0, std::memory_order_seq_cst) == 0) asleep_.fetch_add(1);
  }

  // Wakes a thread, after what it may be waiting for has been published.
  void wake(unsigned thread) {
    std::atomic<std::uint32_t>& parked = places_[thread].parked;
    if (parked.load(std::memory_order_seq_cst) == 0) return;
    // Counted as awake before it can wake up, so that the count is never above the truth; undone if somebody else was
    // first or it got up by itself.
    asleep_.fetch_sub(1);
    if (parked.exchange(0, std::memory_order_seq_cst) == 0)
      asleep_.fetch_add(1);
    else
      rouse(parked);
  }
  void wake_all() {
    for (unsigned i = 0; i < threads_; ++i) wake(i);
  }

  // Counts the calling thread as asleep for the rest of the run. Returns whether it was the last one awake.
  bool one_more_asleep() { return asleep_.fetch_add(1) + 1 == static_cast<std::int32_t>(threads_); }

 private:
  static constexpr std::int64_t kForever = -1;
  // These are futexes, because std::atomic::wait knows no time limit. Sleeping may end early.
  static void sleep_while_parked(std::atomic<std::uint32_t>& parked, std::int64_t nanoseconds);
  static void rouse(std::atomic<std::uint32_t>& parked);

  struct alignas(64) Place {
    std::atomic<std::uint32_t> parked{0};
  };
  unsigned threads_;
  std::unique_ptr<Place[]> places_;
  // The number of threads asleep, less one for each that is being woken or was woken before it had counted itself: it
  // is never above the truth.
  alignas(64) std::atomic<std::int32_t> asleep_{0};
};

}  // namespace doppler
