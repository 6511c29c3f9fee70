#pragma once

#include "doppler/method.h"

namespace doppler {

// What `device_map="auto"` of model loaders does: in topological order, fill the first device to its
// capacity, then the second, … Parameters count, and room is kept for the tensors of the largest op. Where no
// device has a capacity every device takes an equal share, of the parameters or, in a graph without any, of
// the work. Weak: a pipeline without overlap, but it moves little and fits.
Proposal memory_greedy(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
