#include "doppler/place/list/single.h"

#include "doppler/place/list/simple_placements.h"
#include "doppler/place/search/incumbent.h"

namespace doppler {

Proposal single(const Problem& problem, Objective& objective, const MethodOptions& options) {
  Incumbent best("single", objective, options);
  for (DeviceId device = 0; device < problem.device_count() && !best.exhausted(); ++device)
    best.consider(one_device(problem, device));
  return std::move(best).finish();
}

}  // namespace doppler
