#pragma once

#include <span>
#include <vector>

#include "doppler/method.h"

namespace doppler {

// A k-way partition of the undirected graph by METIS (bisections): little transferred between parts of
// balanced work, the best of many seeds and imbalances by simulation. Weak on deep graphs: a balanced cut
// knows no time, and the parts of a cut chain run one after the other.
Proposal metis(const Problem& problem, Objective& objective, const MethodOptions& options);

// Divides groups of ops into `clusters` of about equal work with little transferred between them, whatever devices
// there are: a number below `clusters` for each group. Some may be empty. Throws OutOfTime if `watch` does.
std::vector<std::uint32_t> metis_clusters(const Problem& problem, std::span<const std::uint32_t> group_of_op,
                                          std::uint32_t groups, std::uint32_t clusters, std::uint64_t seed,
                                          Watch watch = Watch(Budget::unlimited()));

}  // namespace doppler
