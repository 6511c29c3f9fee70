#pragma once

#include "doppler/method.h"

namespace doppler {

// `auto`: every cheap method, each with a share of the budget, then annealing from the best of them with the
// rest. Never worse than the best of its parts; Proposal::winner names it. By makespan or, on a machine whose times
// vary (Machine::jitter), by the makespan to expect: then it anneals several times.
Proposal portfolio(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
