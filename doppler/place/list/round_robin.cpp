#include "doppler/place/list/round_robin.h"

#include "doppler/place/list/simple_placements.h"
#include "doppler/place/memory.h"

namespace doppler {

Proposal round_robin(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Placement placement = empty_placement(problem);
  StaticMemory memory(problem);
  DeviceId next = 0;
  Watch watch(options.budget);
  for_each_unit(problem, [&](OpId op) {
    DeviceId tried = 0, device = next;
    bool passed_full = false;
    for (; tried < problem.device_count(); ++tried, device = (device + 1) % problem.device_count()) {
      if (!problem.allows(op, device)) continue;
      if (memory.fits(op, device)) break;
      passed_full = true;
    }
    watch.step(1 + tried);
    if (tried == problem.device_count()) device = memory.least_excess(op);
    next = (device + 1) % problem.device_count();
    memory.add(op, device);
    assign_unit(problem, placement, op, device, passed_full ? Cause::memory : Cause::chosen);
  });
  return fit_in_memory(objective, {std::move(placement)}, options.budget);
}

}  // namespace doppler
