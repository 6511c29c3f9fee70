#pragma once

#include "doppler/place.h"
#include "doppler/place/learned.h"

namespace doppler {

// Throws InputError if the objective is one of another problem.
void check_objective(const Problem& problem, const PlaceOptions& options);

// What placements are judged by: the options' objective, the one that they name, or the usual one.
std::shared_ptr<Objective> objective_of(const Problem& problem, const PlaceOptions& options);

// Starts the clock of options.time.
Budget budget_of(const PlaceOptions& options);

// What a method is told of the options.
MethodOptions method_options(const PlaceOptions& options, const Budget& budget,
                             std::shared_ptr<const LearnedPolicy> policy);

}  // namespace doppler
