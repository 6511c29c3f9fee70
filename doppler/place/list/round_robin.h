#pragma once

#include "doppler/method.h"

namespace doppler {

// Units in topological order, dealt to the devices in turn; one that is full or not allowed is passed over.
// Weak: knows neither costs nor edges. The floor that every other method should beat.
Proposal round_robin(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
