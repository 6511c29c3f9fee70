#pragma once

#include "doppler/budget.h"
#include "doppler/problem.h"

namespace doppler {

// Total work over total capacity, where the work of an op depends on the device. Throws OutOfTime.
Seconds work_bound(const Problem& problem, const Budget& budget = Budget::unlimited());

}  // namespace doppler
