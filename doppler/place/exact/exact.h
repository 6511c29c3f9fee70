#pragma once

#include "doppler/method.h"

namespace doppler {

// Branch and bound for small graphs: the best placement for the problem's own rules, with a proof.
//
// What "best" ranges over:
//   ordered   all assignments and all orders per device;
//   priority  all assignments and all priorities of the ready queues;
//   fifo      all assignments;
//   random    all assignments, for the coins of the rules' seed.
// Starts from what `auto` finds in part of the budget and late-acceptance hill climbing, so it is useful when
// interrupted; proven_bound is then the least bound among the branches that were left. By an objective other than the
// exact makespan, with bulk-synchronous execution, and above a few hundred ops, only the start is computed and the
// bound is lower_bound() (none by another objective). Throws InfeasibleError if nothing that fits in memory was found.
Proposal exact(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
