#pragma once

#include "doppler/method.h"

namespace doppler {

// An approximation of the ENUMERATIVE OPTIMIZER of the DOPPLER paper, for which no code is public: ops that
// shard one operation form a meta-op; its shards are spread evenly over the devices, in the way that moves
// least data from where the inputs are. Greedy: looks neither at consumers nor at times.
Proposal enumerative(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
