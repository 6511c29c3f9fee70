#pragma once

#include "doppler/method.h"

namespace doppler {

// Critical Path on a Processor (Topcuoglu, Hariri and Wu, 2002): one critical path goes to the device that
// runs it in the least time; of the rest, the ready op with the longest path through it is placed where it
// finishes earliest, gaps included.
Proposal cpop(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
