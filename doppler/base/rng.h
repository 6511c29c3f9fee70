#pragma once

#include <array>
#include <cstdint>

namespace doppler {

// xoshiro256** (Blackman & Vigna). Own implementation because the standard distributions are allowed to
// differ between library versions, and the same seed must give the same bytes.
class Rng {
 public:
  explicit Rng(std::uint64_t seed);

  // An independent generator for sub-task `stream`; the parent does not advance.
  Rng split(std::uint64_t stream) const;

  std::uint64_t bits() {
    const std::uint64_t result = rotate_left(state_[1] * 5, 7) * 9;
    const std::uint64_t t = state_[1] << 17;
    state_[2] ^= state_[0];
    state_[3] ^= state_[1];
    state_[1] ^= state_[2];
    state_[0] ^= state_[3];
    state_[2] ^= t;
    state_[3] = rotate_left(state_[3], 45);
    return result;
  }
  // Uniform in [0, n), n > 0; by multiplication, bias below 2^-32 for any n we use.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>(((bits() >> 32) * static_cast<std::uint64_t>(n)) >> 32);
  }
  double uniform() { return static_cast<double>(bits() >> 11) * 0x1.0p-53; }  // [0, 1)
  double uniform(double low, double high) { return low + (high - low) * uniform(); }
  double normal();

 private:
  static std::uint64_t rotate_left(std::uint64_t x, int k) { return (x << k) | (x >> (64 - k)); }
  std::array<std::uint64_t, 4> state_;
};

// A hash of (seed, index) good enough to seed streams and to draw one number per index.
std::uint64_t mix(std::uint64_t seed, std::uint64_t index);

}  // namespace doppler
