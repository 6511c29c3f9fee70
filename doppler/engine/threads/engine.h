#pragma once

#include <atomic>
#include <memory>

#include "doppler/kernels/kernels.h"
#include "doppler/sim/oracle.h"

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
class Engine {
 public:
  // Both must outlive it. Throws InputError if a device has more than one slot.
  Engine(const Problem& problem, Kernels& kernels, EngineOptions options = {});
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Runs every op once; the makespan. Throws what a kernel threw, as InternalError with the op's name;
  // InfeasibleError if memory does not suffice; InternalError with a report if nothing moves any more; RunCancelled.
  Seconds run(const Placement& placement);
  // Of the last run, if it succeeded.
  Timeline timeline() const;
  // A kernel never returned and keeps its thread: the engine refuses further runs, and the kernels must not be destroyed.
  bool lost() const;

 private:
  class Crew;
  std::shared_ptr<Crew> crew_;
};

// The engine as a learner or a search sees it.
class EngineOracle final : public Oracle {
 public:
  explicit EngineOracle(Engine& engine) : engine_(engine) {}
  Seconds evaluate(const Placement& placement) override { return engine_.run(placement); }
  std::optional<Timeline> timeline() const override { return engine_.timeline(); }

 private:
  Engine& engine_;
};

}  // namespace doppler
