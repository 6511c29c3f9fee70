#pragma once

#include <cstddef>

namespace doppler::test {

// Sanitizers slow code down five- to thirtyfold. Under them, tests that repeat something many times repeat it less
// often: the code that they reach stays the same. What a search finds in a tenth of its time is no longer what a test
// asserts of it, so such assertions are for the other builds.
#ifdef DOPPLER_SANITIZED
inline constexpr bool kSanitized = true;
#else
inline constexpr bool kSanitized = false;
#endif

// Returns `count`, or a tenth of it under sanitizers.
template <typename Number>
constexpr Number fewer_if_sanitized(Number count) {
  return kSanitized ? count / 10 : count;
}

// The stride over parameters whose gradients are compared with differences of a loss: under sanitizers eleven times as
// long, a prime, so that every block of parameters is still met.
constexpr std::size_t stride(std::size_t usual) { return kSanitized ? 11 * usual : usual; }

}  // namespace doppler::test
