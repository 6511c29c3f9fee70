#pragma once

#include <limits>
#include <string_view>

#include "doppler/errors.h"
#include "doppler/problem.h"
#include "doppler/timeline.h"

namespace doppler {

// What an executor can do for a problem that it accepted.
struct ExecutorLimits {
  // Whether ops do their work; otherwise they only take their modelled time.
  bool computes = false;
  // More devices than this share cores, so that their times say little.
  DeviceId undisturbed_devices = std::numeric_limits<DeviceId>::max();
};

// Runs placements of one problem for real, one at a time, and owns everything that this takes. doppler/engine has the
// executors that there are: threads with real kernels, and emulated devices. An executor refuses a problem that it
// cannot run when it is made: its constructor throws InputError, and its static obstacle(problem) says why.
//
//   std::shared_ptr<Executor> executor = make_executor(problem);   // run.h
//   Timeline timeline = executor->run(placement);
class Executor {
 public:
  virtual ~Executor() = default;

  virtual std::string_view name() const = 0;
  virtual const Problem& problem() const = 0;
  virtual ExecutorLimits limits() const { return {}; }

  // Runs every op once and returns what happened when. Throws InfeasibleError if memory does not suffice, RunCancelled
  // if the run was interrupted, and InternalError if an op failed or nothing moves any more.
  virtual Timeline run(const Placement& placement) = 0;
  // Runs every op once and returns only the makespan, which costs less than a timeline. Throws as run() does.
  virtual Seconds time(const Placement& placement) { return run(placement).makespan; }
};

}  // namespace doppler
