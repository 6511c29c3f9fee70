#pragma once

#include "doppler/method.h"

namespace doppler {

// A k-way partition of the undirected graph by METIS (bisections): little transferred between parts of
// balanced work, the best of many seeds and imbalances by simulation. Weak on deep graphs: a balanced cut
// knows no time, and the parts of a cut chain run one after the other.
Proposal metis(const Problem& problem, Objective& objective, const MethodOptions& options);

}  // namespace doppler
