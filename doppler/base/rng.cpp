#include "doppler/base/rng.h"

#include <cmath>
#include <numbers>

namespace doppler {

std::uint64_t mix(std::uint64_t seed, std::uint64_t index) {
  // Two rounds of splitmix64's finaliser.
  std::uint64_t z = seed + 0x9e3779b97f4a7c15ULL * (index + 1);
  for (int round = 0; round < 2; ++round) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ULL;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebULL;
    z ^= z >> 31;
  }
  return z;
}

Rng::Rng(std::uint64_t seed) {
  for (std::uint64_t i = 0; i < state_.size(); ++i) state_[i] = mix(seed, i);
}

Rng Rng::split(std::uint64_t stream) const { return Rng(mix(state_[0] ^ state_[3], stream)); }

double Rng::normal() {
  // Box-Muller; 1 - u keeps the argument of the logarithm above 0.
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

}  // namespace doppler
