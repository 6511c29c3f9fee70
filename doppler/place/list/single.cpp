#include "doppler/place/list/single.h"

#include <algorithm>

#include "doppler/base/error.h"
#include "doppler/bounds/relaxation.h"
#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {
namespace {

// Considers one device after the other, as far as they may be; devices that can be exchanged have the same exact
// makespan.
template <typename MayBe>
void consider_devices(const Problem& problem, const Objective& objective, Incumbent& best, MayBe may_be) {
  std::uint32_t kinds = 0;
  const std::vector<std::uint32_t> kind = interchangeable_devices(problem);
  for (DeviceId device = 0; device < problem.device_count() && !best.exhausted(); ++device) {
    if (objective.exact() && kind[device] < kinds) {
      if (!best.empty()) best.consider_equal();
      continue;
    }
    kinds = kind[device] + 1;
    const Placement placement = one_device(problem, device);
    if (may_be(placement, device)) best.attempt([&] { return placement; });
  }
}

}  // namespace

Proposal single(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Incumbent best("single", objective, options);
  consider_devices(problem, objective, best, [&](const Placement& placement, DeviceId device) {
    const auto is_there = [&](DeviceId other) { return other == device; };
    return std::all_of(placement.device_of_op.begin(), placement.device_of_op.end(), is_there) &&
           objective.fits_in_memory(placement, options.budget);
  });
  if (best.empty())
    throw InfeasibleError(
        fmt::format("single: none of {} devices can run and hold the whole graph; required one that can, or another "
                    "method",
                    problem.device_count()));
  return std::move(best).finish();
}

Proposal near_single(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Incumbent best("single", objective, options);
  consider_devices(problem, objective, best, [](const Placement&, DeviceId) { return true; });
  return std::move(best).finish();
}

}  // namespace doppler
