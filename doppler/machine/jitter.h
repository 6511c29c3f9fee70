#pragma once

#include <cstddef>
#include <cstdint>

namespace doppler {

// One outcome of times that vary as a machine's jitter says: a lognormal factor with mean 1 for every index. The factor
// of an index depends on nothing else, so that draws are the same in any order and at any number of threads.
struct JitterDraw {
  double sigma = 0;  // 0: every factor is 1
  std::uint64_t seed = 0;

  // Returns one of many draws that follow from a seed; other streams are other draws.
  static JitterDraw number(std::size_t draw, double sigma, std::uint64_t seed, std::uint64_t stream);

  double factor(std::uint64_t index) const;
  double op_factor(std::uint32_t op) const { return factor(op); }
  double tensor_factor(std::uint32_t tensor) const { return JitterDraw{sigma, ~seed}.factor(tensor); }
};

}  // namespace doppler
