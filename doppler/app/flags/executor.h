#pragma once

#include <memory>
#include <string>
#include <vector>

#include "doppler/app/loading.h"
#include "doppler/executor.h"

namespace doppler {

// How placements are run for real: the flags that `run`, `calibrate`, `validate` and the system stage of `train` share.
struct ExecutorFlags {
  std::string devices = "cpu";        // or "cuda", "emulated"
  std::string engine = "threads";     // or "starpu"
  double time_scale = 0;              // emulated; 0: 1, or as fits half a second for a graph without a unit
  std::vector<std::string> slowdown;  // emulated: "device=factor"
  std::vector<std::string> inputs;    // "name=file.npy"
  bool deterministic = false;
  std::string stall_after = "30s";

  bool emulated() const { return devices == "emulated"; }
};
void add_executor_flags(CLI::App& verb, ExecutorFlags& flags);

// Makes the executor that the flags ask for, for one problem, by the verb's seed, and warns, unless the verb is to be
// quiet, if devices have to share cores. Throws InputError if the flags contradict one another, the
// graph carries no program to run on devices that compute, an input file does not fit, or there are no CUDA devices to
// run on.
std::shared_ptr<Executor> make_executor(const LoadedProblem& loaded, const ExecutorFlags& flags, const Options& verb);

}  // namespace doppler
