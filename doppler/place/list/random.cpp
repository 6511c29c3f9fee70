#include "doppler/place/list/random.h"

#include "doppler/base/rng.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/memory.h"

namespace doppler {

Proposal random(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Placement placement = empty_placement(problem);
  StaticMemory memory(problem);
  Rng rng(options.seed);
  std::vector<DeviceId> usable;
  Watch watch(options.budget);
  for_each_unit(problem, [&](OpId op) {
    watch.step(problem.devices(op).size());
    usable.clear();
    for (const DeviceId device : problem.devices(op))
      if (memory.fits(op, device)) usable.push_back(device);
    const bool full = usable.empty();
    const DeviceId device =
        full ? memory.least_excess(op) : usable[rng.below(static_cast<std::uint32_t>(usable.size()))];
    memory.add(op, device);
    assign_unit(problem, placement, op, device, full ? Cause::memory : Cause::chosen);
  });
  return fit_in_memory(objective, {std::move(placement)}, options.budget);
}

}  // namespace doppler
