#pragma once

#include "doppler/engine/runtime/courier.h"
#include "doppler/engine/runtime/ready_queue.h"
#include "doppler/engine/runtime/shared_run.h"

namespace doppler {

// One device: takes what has arrived, picks a ready op by the discipline, runs it, passes its results on. Only the
// device's own thread touches its queue and the counters of its ops, so none of that needs a lock. Internal to
// doppler/engine.
class Worker {
 public:
  // `courier` brings this device its tensors; it is null if it cannot be helped.
  Worker(SharedRun& run, DeviceId device, Courier* courier);

  // Forgets the last run.
  void prepare();
  // Works on the device's thread until its ops are done or the run is stopped.
  void work();

  // The watchdog asks from its own thread how many ops have ended, how many tensors the worker has copied itself, and
  // which op is running, kNoOp if none is.
  std::uint32_t executed() const { return executed_.load(std::memory_order_relaxed); }
  std::uint32_t copied() const { return copied_.load(std::memory_order_relaxed); }
  OpId current() const { return current_.load(std::memory_order_relaxed); }
  static constexpr OpId kNoOp = std::numeric_limits<OpId>::max();
  // Returns an op that waits for memory, or kNoOp; to be asked only when every thread sleeps.
  OpId waits_for_memory() const { return deferred_.empty() ? kNoOp : deferred_.front(); }
  // Returns the time that went into folds while the device waited.
  Ticks folding() const { return folding_; }
  DeviceId device() const { return device_; }

 private:
  void run_asynchronously();
  void run_supersteps();
  void run_level(std::span<const OpId> ops);
  void cross_barrier(std::uint32_t number);

  void receive();
  bool has_mail() const;
  void arrive(Routes::Consumer consumer);
  bool can_help() const;
  bool help_courier();
  bool run_one();
  bool fold_one();
  template <typename HasWork>
  void rest(HasWork has_work);

  bool allocate_outputs(OpId op);
  bool execute(OpId op);
  void run_kernel(OpId op);
  void fold(OpId op, std::uint32_t input);
  void release_inputs(OpId op);
  void deliver_local(OpId op);
  void send(OpId op);
  bool copy_directly(std::uint32_t id);

  SharedRun& run_;
  const DeviceId device_;
  Arena& arena_;
  Courier* const courier_;
  const int spins_;                    // how often it looks for work before it sleeps
  std::uint64_t releases_helped_ = 0;  // Arena::releases() when this worker last served its courier
  ReadyQueue queue_;
  Ticks now_ = 0;
  std::uint32_t left_ = 0;
  std::uint32_t received_ = 0;  // transfers that have arrived
  std::vector<OpId> deferred_;  // ops that are ready but did not fit in memory
  std::uint64_t releases_seen_ = 0;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;

  // Formations fold what has arrived, but not where memory is limited: the outputs of a formation that waits would take
  // it from ops that could run.
  bool folds_early_ = false;
  std::vector<Routes::Consumer> foldable_;  // inputs that have arrived of formations that wait for others
  std::vector<char> fold_begun_;            // by op
  std::vector<char> folded_;                // by input edge, as Routes::input_begin
  Ticks folding_ = 0;

  alignas(64) std::atomic<std::uint32_t> executed_{0};
  std::atomic<std::uint32_t> copied_{0};
  std::atomic<OpId> current_{kNoOp};
};

}  // namespace doppler
