#pragma once

#include "doppler/method.h"

namespace doppler {

// Earliest Task First (Hwang, Chow, Anger and Lee, 1989): of all pairs of a ready op and a device, the one
// that starts earliest; ties go to the larger static level (mean times, no transfers), then to the smaller op
// and device id.
Proposal etf(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
