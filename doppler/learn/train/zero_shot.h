#pragma once

#include "doppler/learn/policy.h"
#include "doppler/method.h"

namespace doppler {

// The policy's answer for a problem that it may never have seen: the best of its greedy placement and `samples` others,
// by the objective. (Greedy alone is erratic; samples are drawn more and less sharply.) Throws InfeasibleError if
// nothing fits in memory, and OutOfTime if time is up before the first is there.
Proposal zero_shot(Policy& policy, const Problem& problem, Objective& objective, std::uint32_t samples,
                   const MethodOptions& options);

}  // namespace doppler
