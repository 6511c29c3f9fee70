#include "doppler/machine/jitter.h"

#include <cmath>

#include "doppler/base/rng.h"

namespace doppler {

JitterDraw JitterDraw::number(std::size_t draw, double sigma, std::uint64_t seed, std::uint64_t stream) {
  return {sigma, mix(stream == 0 ? seed : mix(seed, stream), draw)};
}

// exp(sigma·z - sigma²/2), z standard normal, has mean 1.
double JitterDraw::factor(std::uint64_t index) const {
  if (sigma == 0) return 1.0;
  Rng rng(mix(seed, index));
  return std::exp(sigma * rng.normal() - sigma * sigma / 2);
}

}  // namespace doppler
