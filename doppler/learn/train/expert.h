#pragma once

#include "doppler/budget.h"
#include "doppler/learn/train/task.h"

namespace doppler {

// Expert iteration (Anthony, Tian and Barber, 2017) with the annealer as the expert: improves a placement by local
// search, makes the result easier to learn, and offers it to the task's elites. Deterministic if the budget is; where
// time is up, what was found so far is offered.
void improve_by_search(Task& task, const Placement& start, const Budget& budget, std::uint64_t seed);

// The same with moves of whole blocks of ops, as a policy with clusters offers them: from the start, a block at a time
// goes to another device, and worse placements are accepted ever more seldom.
void improve_by_blocks(Task& task, const Placement& start, const std::vector<std::vector<OpId>>& blocks,
                       std::uint64_t moves, const Budget& budget, Rng rng);

}  // namespace doppler
