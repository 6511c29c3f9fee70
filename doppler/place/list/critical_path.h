#pragma once

#include "doppler/method.h"

namespace doppler {

// CRITICAL PATH, the teacher and the baseline of the DOPPLER paper: among the ops whose producers are placed,
// the one with the largest b-level (mean costs, transfers on every edge), onto the device where it starts
// earliest; ties are drawn by the seed. The best of 50 repetitions by simulation, as in the published
// configuration.
//
// With MethodOptions::published it repeats two defects of the published code (for parity with it, and meant
// for graphs of its size): the number of an equally critical op is drawn, but used as an index into the whole
// ready list; and an op's start is recorded as the work already on its device, so waiting for inputs is
// forgotten.
Proposal critical_path(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
