#pragma once

#include "doppler/sim/relaxation.h"

namespace doppler {

// The largest makespan found, from `known` (a proven lower bound) on, that contradicts the facts of the relaxation: no
// execution is that short. `head` and `tail` are valid; `effort` limits the number of propagation rounds.
Seconds destructive_bound(const Relaxation& relaxation, const std::vector<Seconds>& head,
                          const std::vector<Seconds>& tail, Seconds known, std::size_t effort);

}  // namespace doppler
