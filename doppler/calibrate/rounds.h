#pragma once

#include <functional>
#include <vector>

#include "doppler/base/rng.h"
#include "doppler/executor.h"

namespace doppler {

// A placement that is run in rounds with others, so that a box that is slow for a while is so to all of them.
struct TimedPlacement {
  Placement placement;
  std::vector<Seconds> times = {};  // of the rounds that count, none left out
  bool fits = true;                 // in memory, as far as is known; else it is not run again
};

// Calls `run` for each placement that fits, in an order drawn anew, so that none always runs after the same other one
// and in the caches that it leaves. A placement for which `run` throws InfeasibleError does not fit; other exceptions
// pass.
void run_round(std::vector<TimedPlacement>& placements, Rng& rng, const std::function<void(TimedPlacement&)>& run);

// Returns the makespans of `repeat` runs after `warmup` others.
std::vector<Seconds> time_repeatedly(Executor& executor, const Placement& placement, unsigned warmup, unsigned repeat);

}  // namespace doppler
