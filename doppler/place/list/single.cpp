#include "doppler/place/list/single.h"

#include "doppler/bounds/relaxation.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {

Proposal single(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Incumbent best("single", objective, options);
  // Devices that can be exchanged have the same exact makespan.
  std::uint32_t kinds = 0;
  const std::vector<std::uint32_t> kind = interchangeable_devices(problem);
  for (DeviceId device = 0; device < problem.device_count() && !best.exhausted(); ++device) {
    if (objective.exact() && kind[device] < kinds) {
      best.consider_equal();
      continue;
    }
    kinds = kind[device] + 1;
    best.attempt([&] { return one_device(problem, device); });
  }
  return std::move(best).finish();
}

}  // namespace doppler
