#pragma once

#include <vector>

#include "doppler/method.h"

namespace doppler {

// Simulated annealing (Kirkpatrick, Gelatt and Vecchi, 1983) over devices and, where the discipline reads
// them, priorities: independent chains, each a sequence of cooling passes from the common best, from where it
// stands, or from scratch; a single chain if the budget is short for the graph. Chains meet after every pass, so the
// result depends on the seed and the number of evaluations but not on the number of threads.
//
// Strict orders are evaluated incrementally, several times as fast as a whole simulation. Searches under
// `priority` therefore alternate: a pass over strict orders finds a good basin, a pass under the real rules
// settles in it.
Proposal anneal(const Problem& problem, Objective& objective, const MethodOptions& options);

// The same from given placements, at least one; the result is never worse than the best of them; where
// the objective has draws, by draws that judge better than its own.
Proposal anneal_from(const Problem& problem, Objective& objective, const MethodOptions& options,
                     const std::vector<Placement>& starts);

}  // namespace doppler
