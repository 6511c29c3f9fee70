#pragma once

#include <span>

#include "doppler/problem.h"

namespace doppler {

// The cause to record: pins and a lack of choice come before the method's own reason.
Cause cause_of(const Problem& problem, OpId op, Cause cause);

// A placement to be filled by assign_unit(), which puts a whole colocation unit on a device: `op` for `cause`
// (unless a pin or the lack of choice is the reason), the rest because it is colocated with it.
Placement empty_placement(const Problem& problem);
void assign_unit(const Problem& problem, Placement& placement, OpId op, DeviceId device, Cause cause);

// Calls visit(op) once per unit, with its first op in topological order.
template <typename Visit>
void for_each_unit(const Problem& problem, Visit visit) {
  std::vector<char> seen(problem.has_groups() ? problem.op_count() : 0, 0);
  for (const OpId op : problem.graph().topological_order()) {
    if (!seen.empty()) {
      if (seen[op]) continue;
      for (const OpId member : problem.unit(op)) seen[member] = 1;
    }
    visit(op);
  }
}

// Everything on one device; what is not allowed there goes to the device that runs it fastest.
Placement one_device(const Problem& problem, DeviceId device);

// Units in topological order go to the first device until the amounts there reach its limit, then to the
// next, …; the last takes the rest. A unit not allowed on the current device goes to the first allowed one
// with room, if any, else to the last. `amount` per op, `limit` per device.
Placement fill_in_order(const Problem& problem, std::span<const double> amount, std::span<const double> limit);

}  // namespace doppler
