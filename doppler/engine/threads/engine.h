#pragma once

#include <atomic>
#include <memory>

#include "doppler/kernels/kernels.h"
#include "doppler/sim/executor.h"

namespace doppler {

struct EngineOptions {
  enum class Devices : std::uint8_t {
    cpu,       // each device is a thread pinned to a core; kernels run and tensors are copied for real (on GPUs, if
               // that is where the kernels compute: then the thread feeds one)
    emulated,  // each device is a thread that lets the modelled time pass; copies and memory are modelled too
  };
  Devices devices = Devices::cpu;
  // Emulated: real seconds per second (or unit) of the cost model.
  double time_scale = 1;
  // Formations add their inputs in the graph's order, not as they arrive: the same bits in every run.
  bool deterministic = false;
  // A run in which no op ends for this long is given up, with a report of who waits for what.
  Seconds stall_after = 30;
  // Set to true from anywhere: the run ends early with RunCancelled.
  const std::atomic<bool>* interrupted = nullptr;
};

struct RunCancelled : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Executes placements of one problem for real, asynchronously and work-conserving, by the rules of the problem: a
// worker thread per device, couriers that copy tensors between the devices' memories beside them, and no lock or queue
// that all share. docs/engine.md has the whole story.
//
// Differences to the simulator, which follows the same rules: times are real; an op that does not fit in memory waits
// instead of making the run infeasible. One run at a time. Devices need exactly one slot.
class Engine final : public Executor {
 public:
  // `kernels` must outlive it. Throws InputError if a device has more than one slot.
  Engine(const Problem& problem, Kernels& kernels, EngineOptions options = {});
  ~Engine() override;
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs every op once; the makespan. Throws what a kernel threw, as InternalError with the op's name;
  // InfeasibleError if memory does not suffice; InternalError with a report if nothing moves any more; RunCancelled.
  Seconds execute(const Placement& placement);
  // What happened in the last run; it must have succeeded.
  Timeline timeline() const;

  std::string_view name() const override { return "threads"; }
  const Problem& problem() const override;
  Timeline run(const Placement& placement) override {
    execute(placement);
    return timeline();
  }
  // A kernel never returned and keeps its thread: the engine refuses further runs, and the kernels must not be destroyed.
  bool lost() const;

 private:
  class Crew;
  std::shared_ptr<Crew> crew_;
};

}  // namespace doppler
