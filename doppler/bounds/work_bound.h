#pragma once

#include "doppler/problem.h"

namespace doppler {

// Total work over total capacity, where the work of an op depends on the device.
Seconds work_bound(const Problem& problem);

}  // namespace doppler
