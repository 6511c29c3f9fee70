#pragma once

#include "doppler/method.h"

namespace doppler {

// Every unit on a random device, among those allowed and not full. Weak by design: what a search starts from
// and a learner must beat.
Proposal random(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
