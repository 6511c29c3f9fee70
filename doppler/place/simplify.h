#pragma once

#include "doppler/method.h"

namespace doppler {

// How many devices a placement uses.
std::size_t used_devices(const Problem& problem, const Placement& placement);
// The bytes that it moves between devices: every tensor once per other device where somebody reads it.
Bytes moved_bytes(const Graph& graph, const std::vector<DeviceId>& device_of_op);

struct SimplifyOptions {
  double tolerance = 0;  // how much worse than the given placement the result may be, as a share
  Budget budget = Budget::unlimited();
  std::uint64_t evaluations = 4000;  // at most so many values are asked for
};

// Returns a simpler placement that is worth nearly the same: as few devices as were found to do, then as few bytes
// moved, then the first of devices that are equal. Every step is judged by the objective and by memory, so that the
// result is at most the tolerance worse. It is a greedy search: devices are emptied one by one, the least busy first,
// onto one other device or by HEFT on those that are left; then units that share tensors with another device move
// there. Priorities stay as they are. `evaluations` counts what was asked.
Proposal simplify(Objective& objective, Proposal found, const SimplifyOptions& options);

}  // namespace doppler
