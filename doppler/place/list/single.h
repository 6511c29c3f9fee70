#pragma once

#include "doppler/method.h"

namespace doppler {

// The best single device by simulation. Weak by design, but where moving data costs more than parallelism gains it is
// the optimum. Throws InfeasibleError if no device can run and hold everything.
Proposal single(const Problem& problem, Objective& objective, const MethodOptions& options);

// The same for searches to begin with: what is not allowed on the device (pins, kinds that it cannot run) goes to the
// device that runs it fastest, and what does not fit goes elsewhere too.
Proposal near_single(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
