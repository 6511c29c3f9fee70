#pragma once

#include <algorithm>

#include "doppler/units.h"

namespace doppler {

// The roofline (Williams, Waterman and Patterson, 2009): work takes as long as the slower of its arithmetic and its
// memory traffic, and some overhead. A rate of 0 costs nothing.
inline Seconds roofline(Seconds overhead, Flops flops, double flops_per_second, double bytes, double bytes_per_second) {
  const Seconds compute = flops_per_second > 0 ? flops / flops_per_second : 0;
  const Seconds memory = bytes_per_second > 0 ? bytes / bytes_per_second : 0;
  return overhead + std::max(compute, memory);
}

}  // namespace doppler
