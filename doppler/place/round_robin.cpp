#include "doppler/place/round_robin.h"

#include "doppler/place/memory.h"
#include "doppler/place/simple_placements.h"

namespace doppler {

Proposal round_robin(const Problem& problem, const MethodOptions&) {
  Placement placement = empty_placement(problem);
  StaticMemory memory(problem);
  DeviceId next = 0;
  for_each_unit(problem, [&](OpId op) {
    const auto usable = [&](DeviceId device) {
      return problem.allows(op, device) && memory.fits(op, device);
    };
    DeviceId tried = 0;
    DeviceId device = next;
    while (tried < problem.device_count() && !usable(device)) {
      device = (device + 1) % problem.device_count();
      ++tried;
    }
    const bool full = tried == problem.device_count();
    if (full) device = memory.least_excess(op);
    next = (device + 1) % problem.device_count();
    memory.add(op, device);
    assign_unit(problem, placement, op, device, full ? Cause::memory : Cause::chosen);
  });
  return fit_in_memory(problem, {std::move(placement)});
}

}  // namespace doppler
