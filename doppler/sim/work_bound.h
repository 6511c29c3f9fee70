#pragma once

#include "doppler/sim/problem.h"

namespace doppler {

// Total work over total capacity, where the work of an op depends on the device.
Seconds work_bound(const Problem& problem);

}  // namespace doppler
