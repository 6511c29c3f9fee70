#pragma once

#include <functional>
#include <memory>

#include "doppler/method.h"
#include "doppler/sim/time_ratios.h"

namespace doppler {

// A policy's answer for a problem; may be empty.
using Advice = std::function<Proposal(const Problem&, Objective&, const MethodOptions&)>;

struct Suggestion {
  Placement placement;                // the incumbent itself, if nothing better was found
  Seconds predicted = 0, before = 0;  // of it, and of the incumbent
};

// The expected makespan in a simulator corrected by measurements: what search_as_measured() goes by while it searches.
std::unique_ptr<Objective> corrected_objective(const TimeRatios& ratios, const Problem& problem);

// The best placement that a simulator corrected by measurements knows: of those known already, of which the first is
// the incumbent, of the policy's answer, of HEFT's, and of what two short annealings make of all of them. All go by the
// expected makespan, which is the prediction. When time is up, it is the best of what there is.
Suggestion search_as_measured(const TimeRatios& ratios, const Problem& problem, std::vector<Placement> known,
                              const Advice& policy, const MethodOptions& options);

}  // namespace doppler
