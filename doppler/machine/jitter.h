#pragma once

#include <cstdint>

namespace doppler {

// One outcome of times that vary as a machine's jitter says: a lognormal factor with mean 1 for every index. The factor
// of an index depends on nothing else, so that draws are the same in any order and at any number of threads.
struct JitterDraw {
  double sigma = 0;  // 0: every factor is 1
  std::uint64_t seed = 0;

  double factor(std::uint64_t index) const;
};

}  // namespace doppler
