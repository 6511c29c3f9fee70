#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "doppler/app/loading.h"
#include "doppler/base/rng.h"
#include "doppler/engine/emulated/emulated_kernels.h"
#include "doppler/engine/threads/engine.h"
#include "doppler/kernels/program_kernels.h"

namespace CLI {
class App;
}  // namespace CLI

namespace doppler {

// How placements are run for real: the flags that `run`, `validate` and the system stage of `train` share.
struct RigOptions {
  std::string engine = "threads";     // the only one so far
  std::string devices = "cpu";        // or "cuda", "emulated"
  double time_scale = 0;              // emulated; 0: 1, or as fits half a second for a graph without a unit
  std::vector<std::string> slowdown;  // emulated: "device=factor"
  std::vector<std::string> inputs;    // "name=file.npy"
  bool deterministic = false;
  std::string stall_after = "30s";
};
void add_rig_flags(CLI::App& verb, RigOptions& options);

// A box of `count` cores or GPUs with rates that only have to let a run begin. If no core is left for couriers, cores copy
// for themselves: two threads that want one core are slower than one that does both, and nobody can predict them.
Machine bare_machine(const std::string& type, DeviceId count);

// An engine and the kernels it runs, for one problem.
class Rig {
 public:
  // Throws InputError if the graph carries no program to run on devices that compute, an input file does not fit, or
  // there are no CUDA devices to run on.
  Rig(const LoadedProblem& loaded, const RigOptions& options, std::uint64_t seed);
  ~Rig();

  Engine& engine() { return *engine_; }
  std::shared_ptr<Executor> executor() { return engine_; }
  // One of them; the other is null.
  EmulatedKernels* emulated() { return emulated_.get(); }
  ProgramKernels* kernels() { return kernels_.get(); }
  const program::Program& program() const { return *engine_->problem().program()->program; }
  double time_scale() const { return time_scale_; }

 private:
  void load_kernels(const LoadedProblem& loaded, const RigOptions& options, std::uint64_t seed);

  double time_scale_ = 1;
  std::unique_ptr<ProgramKernels> kernels_;
  std::unique_ptr<EmulatedKernels> emulated_;
  std::shared_ptr<Engine> engine_;
};

// A placement that takes turns with others, so that a box that is slow for a while is so to all of them.
struct Turn {
  Placement placement;
  std::vector<Seconds> times;  // of the rounds that count, none left out
  bool fits = true;            // in memory, so far; else it is not run again
};
// Placements at random to calibrate with: every device computes and every link is used. Others than those of validate.
// Throws InputError if the graph cannot be calibrated with.
std::vector<Turn> calibration_turns(const Problem& problem, unsigned count, std::uint64_t seed);
// Runs each once, in an order drawn anew, so that none always runs after the same other one and in the caches it leaves;
// `measured` is told after each run. Throws RunCancelled.
void run_round(Engine& engine, std::vector<Turn>& turns, Rng& rng, const std::function<void(Turn&, Seconds)>& measured);

// Makespans of `repeat` runs after `warmup` others.
std::vector<Seconds> measure(Engine& engine, const Placement& placement, unsigned warmup, unsigned repeat);

}  // namespace doppler
