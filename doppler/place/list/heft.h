#pragma once

#include "doppler/method.h"

namespace doppler {

// HEFT (Topcuoglu, Hariri and Wu, 2002): ops by descending upward rank (mean costs), each where it finishes
// earliest, gaps included. The priority is the order of start times, so `ordered` execution with free links
// repeats the schedule.
Proposal heft(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
