#pragma once

#include "doppler/method.h"

namespace doppler {

// The best single device by simulation. What is not allowed there (pins, kinds it cannot run) goes to the
// device that runs it fastest. Weak by design, but where moving data costs more than parallelism gains it is
// the optimum.
Proposal single(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
