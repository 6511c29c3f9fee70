#pragma once

#include "doppler/engine/runtime/shared_run.h"

namespace doppler {

// Moves tensors between devices beside the workers: a transfer is a task of its own and overlaps with compute. Where
// receivers copy, their workers call their courier between two ops. Waiting transfers are tried in order, and one that
// does not fit in the destination's memory lets others pass. Internal to doppler/engine.
class Courier {
 public:
  Courier(SharedRun& run, unsigned courier) : run_(run), courier_(courier) {}
  virtual ~Courier() = default;
  Courier(const Courier&) = delete;
  Courier& operator=(const Courier&) = delete;

  // Forgets the last run.
  virtual void prepare();
  // Serves on the courier's own thread, if it has one, until the run is stopped.
  void work();

  // Serves one round on the thread of a worker, and returns whether there was anything to do. A worker that has nothing
  // else to do serves the courier of its device: nobody can do so sooner, and a courier that has to wait for a core
  // would keep it waiting. Where receivers copy, nobody else does.
  bool help();
  // Whether there may be something to do.
  bool has_mail() const;
  // Whether there are copies that wait for memory, and for nothing else.
  bool blocked() const { return blocked_.load(std::memory_order_seq_cst); }

  // The transfers that have not begun; to be read only when every thread sleeps.
  const std::vector<std::uint32_t>& waiting() const { return waiting_; }

 protected:
  // Serves what can be served of `waiting_`, and returns whether anything was.
  virtual bool serve() = 0;
  // Returns when to look again although there is no mail; kNever means not before there is some.
  virtual Ticks next_due() const { return kNever; }
  static constexpr Ticks kNever = std::numeric_limits<Ticks>::max();

  // Takes the first waiting transfer whose copy fits in memory, and notes that it begins now; none if there is none.
  std::optional<std::uint32_t> begin_one();
  // The transfer has ended: fills the copy and tells the destination.
  void arrive(std::uint32_t id);

  SharedRun& run_;
  const unsigned courier_;
  std::vector<std::uint32_t> waiting_;  // not begun; guarded by the mutex, as everything that serve() touches

 private:
  void receive();
  std::uint64_t releases() const;  // of all memories that it delivers to

  std::mutex mutex_;
  std::atomic<bool> more_{false};     // some of `waiting_` can perhaps be served
  std::atomic<bool> blocked_{false};  // none of `waiting_` fits in memory
};

// The courier of one destination, which copies bytes one transfer after the other.
class CopyCourier final : public Courier {
 public:
  using Courier::Courier;

 private:
  bool serve() override;
};

}  // namespace doppler
