#pragma once

#include "doppler/learn/task.h"

namespace doppler {

// Expert iteration (Anthony, Tian and Barber, 2017) with the annealer as the expert: improves a placement by local
// search, makes the result easier to learn, and offers it to the task's elites. Deterministic in seed and evaluations.
void improve_by_search(Task& task, const Placement& start, std::uint64_t evaluations, std::uint64_t seed);

}  // namespace doppler
