#pragma once

#include <bit>
#include <cstdint>

namespace doppler::model {

// Numbers of 16 bits, which are kept so and computed in f32.
struct Float16 {
  std::uint16_t bits;
};
struct BFloat16 {
  std::uint16_t bits;
};

inline float to_float(Float16 half) {
  const std::uint32_t sign = static_cast<std::uint32_t>(half.bits & 0x8000U) << 16;
  const std::uint32_t exponent = half.bits >> 10 & 0x1FU;
  std::uint32_t mantissa = half.bits & 0x3FFU;
  if (exponent == 0x1F) return std::bit_cast<float>(sign | 0x7F800000U | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  if (mantissa == 0) return std::bit_cast<float>(sign);
  std::uint32_t shift = 0;  // a subnormal number of 16 bits is a normal one of 32
  for (; (mantissa & 0x400U) == 0; ++shift) mantissa <<= 1;
  return std::bit_cast<float>(sign | (113 - shift) << 23 | (mantissa & 0x3FFU) << 13);
}

// Rounds to the nearest, ties to even.
inline Float16 to_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude >= 0x7F800000U)  // infinity and NaN
    return {static_cast<std::uint16_t>(sign | 0x7C00U | (magnitude > 0x7F800000U ? 0x200U : 0U))};
  if (magnitude >= 0x477FF000U) return {static_cast<std::uint16_t>(sign | 0x7C00U)};  // rounds to infinity
  if (magnitude < 0x38800000U) {                                                      // subnormal in 16 bits
    // Adding 0.5 puts the last bit that stays at the end of the mantissa, and the processor rounds.
    const float shifted = std::bit_cast<float>(magnitude) + 0.5F;
    return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(shifted) - 0x3F000000U))};
  }
  const std::uint32_t odd = magnitude >> 13 & 1U;
  return {static_cast<std::uint16_t>(sign | (magnitude - 0x38000000U + 0xFFFU + odd) >> 13)};
}

inline float to_float(BFloat16 half) { return std::bit_cast<float>(static_cast<std::uint32_t>(half.bits) << 16); }

inline BFloat16 to_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<std::uint16_t>(bits >> 16 | 0x40U)};  // NaN stays one
  return {static_cast<std::uint16_t>((bits + 0x7FFFU + (bits >> 16 & 1U)) >> 16)};
}

}  // namespace doppler::model
