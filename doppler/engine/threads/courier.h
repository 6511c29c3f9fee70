#pragma once

#include "doppler/engine/threads/shared_run.h"

namespace doppler {

// Moves tensors between devices beside the workers: a transfer is a task of its own and overlaps with compute (where
// receivers copy, their workers call it between two ops). Waiting
// transfers are tried in order, and one that does not fit in the destination's memory lets others pass. Internal to
// doppler/engine.
class Courier {
 public:
  Courier(SharedRun& run, unsigned courier) : run_(run), courier_(courier) {}
  virtual ~Courier() = default;
  Courier(const Courier&) = delete;

  virtual void prepare();
  void work();  // on its thread, if it has one, until the run is stopped

  // A worker that has nothing to do serves the courier of its device itself: nobody can do so sooner, and a courier
  // that has to wait for a core would keep it waiting. Where receivers copy, nobody else does. False: there was nothing
  // to do.
  bool help();
  // Whether there may be something to do.
  bool has_mail() const;
  // Whether copies wait for memory, and for nothing else.
  bool blocked() const { return blocked_.load(std::memory_order_seq_cst); }

  // When everybody sleeps: a transfer that waits for memory.
  const std::vector<std::uint32_t>& waiting() const { return waiting_; }

 protected:
  // Serves what can be served of `waiting_`. Returns whether anything was.
  virtual bool serve() = 0;
  // When to look again without any mail, in ticks; kNever: not before there is.
  virtual Ticks next_due() const { return kNever; }
  static constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

  void arrive(std::uint32_t id);
  Ticks modelled_time(std::uint32_t id) const;  // of a transfer between emulated devices, with jitter
  std::uint64_t releases() const;               // of all memories it delivers to

  SharedRun& run_;
  const unsigned courier_;
  std::vector<std::uint32_t> waiting_;  // not begun; guarded by the mutex, as everything that serve() touches

 private:
  void receive();

  std::uint64_t runs_ = 0;
  std::mutex mutex_;
  std::atomic<bool> more_{false}, blocked_{false};  // of `waiting_`: may be served; do not fit in memory
};

// Copies for real, one at a time: the courier of one destination. If it is an emulated one that copies for itself, the
// modelled time passes instead.
class CopyCourier final : public Courier {
 public:
  using Courier::Courier;

 private:
  bool serve() override;
};

// Lets the time pass that the machine's links take: one courier for all, since waiting can be done for many at once.
class EmulatedCourier final : public Courier {
 public:
  EmulatedCourier(SharedRun& run, unsigned courier);
  void prepare() override;

 private:
  struct Due {
    Ticks time;
    std::uint32_t id;
    bool operator<(const Due& other) const { return time > other.time; }  // the heap's top is the first
  };
  bool serve() override;
  Ticks next_due() const override { return due_.empty() ? kNever : due_.front().time; }
  void begin(std::uint32_t id);

  std::vector<Due> due_;                          // a heap
  std::vector<std::vector<Ticks>> channel_free_;  // by src × devices + dst; empty: links are free
};

}  // namespace doppler
