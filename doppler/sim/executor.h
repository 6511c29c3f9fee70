#pragma once

#include <string_view>

#include "doppler/problem/problem.h"
#include "doppler/sim/timeline.h"

namespace doppler {

// Runs placements of one problem for real, one at a time. doppler/engine has those that there are.
class Executor {
 public:
  virtual ~Executor() = default;

  virtual std::string_view name() const = 0;
  virtual const Problem& problem() const = 0;
  // Runs every op once; what happened when. Throws InfeasibleError if memory does not suffice, RunCancelled if it was
  // interrupted, and InternalError if an op failed or nothing moves any more.
  virtual Timeline run(const Placement& placement) = 0;
};

}  // namespace doppler
