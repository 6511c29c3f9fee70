#pragma once

#include "doppler/sim/relaxation.h"

namespace doppler {

// Starting from `known`, a proven lower bound, the largest makespan found that contradicts the facts of the
// relaxation: no execution is that short. `head` and `tail` are valid earliest starts and times after the
// end. Tries at most `attempts` makespans.
Seconds destructive_bound(const Relaxation& relaxation, const std::vector<Seconds>& head,
                          const std::vector<Seconds>& tail, Seconds known, int attempts);

}  // namespace doppler
