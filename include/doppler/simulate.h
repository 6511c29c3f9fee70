#pragma once

// What a placement is worth without running it.
//
//   doppler::SimulationResult result = doppler::simulate(problem, placement);
//   result.outcome.made.makespan; result.devices[0].utilisation; result.overflow;
//
// The simulator is work-conserving: a device with a free slot and a ready op runs one, an op is ready when every input
// is on its device, and a tensor moves once per destination. Problem::rules() chooses the queues and the links.
//
// To judge placements by something of your own, derive from Objective (objective.h) and give it to place().

#include "doppler/bounds.h"
#include "doppler/objective.h"
#include "doppler/results.h"
#include "doppler/timeline.h"

namespace doppler {

// Simulates the placement once. A placement that does not fit in memory is infeasible, which is said by the result; one
// that contradicts the problem is an InputError.
SimulationResult simulate(const Problem& problem, const Placement& placement);
// The same of a run that is known already.
SimulationResult simulate(const Problem& problem, const Placement& placement, const Timeline& timeline);

}  // namespace doppler
