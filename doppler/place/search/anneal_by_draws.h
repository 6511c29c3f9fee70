#pragma once

#include <vector>

#include "doppler/method.h"

namespace doppler {

// Annealing for times that vary, by an objective that has draws (Objective::sampled).
//
// Annealing by exact times alone finds schedules that fit like clockwork and fall apart when a wheel slips. So it has
// only the first half of the time, to find a good region. The second half goes into passes by the mean over a few
// draws, each pass by fresh ones, from the best so far. What a pass finds suits its own draws too well to be believed:
// it counts by others. In the end the best few are judged, with the starts, by draws that none of them was chosen by.
//
// Where the budget is too short for passes, it is annealing by exact times and the choice among its answer and the
// starts.
//
// `starts` is not empty. The result is the same at any number of threads.
Proposal anneal_by_draws(const Problem& problem, Objective& objective, const MethodOptions& options,
                         const std::vector<Placement>& starts);

}  // namespace doppler
