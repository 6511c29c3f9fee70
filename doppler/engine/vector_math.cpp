#include "doppler/engine/vector_math.h"

// glibc has vector versions of these functions but shows them to the compiler only under -ffast-math, which would change
// the meaning of NaN and infinity in the whole file. Declared so, and without <cmath>, the loops below use them.
#if defined(__x86_64__) && defined(__GLIBC__) && defined(__GNUC__) && !defined(__clang__)
#define DOPPLER_VECTOR __attribute__((simd("notinbranch"), const))
#else
#define DOPPLER_VECTOR
#endif
extern "C" {
DOPPLER_VECTOR float expf(float) noexcept;
DOPPLER_VECTOR double exp(double) noexcept;
DOPPLER_VECTOR float logf(float) noexcept;
DOPPLER_VECTOR double log(double) noexcept;
DOPPLER_VECTOR float tanhf(float) noexcept;
DOPPLER_VECTOR double tanh(double) noexcept;
}

namespace doppler {

void exp_of(const float* __restrict x, float* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = ::expf(x[i]);
}
void exp_of(const double* __restrict x, double* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = ::exp(x[i]);
}
void log_of(const float* __restrict x, float* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = ::logf(x[i]);
}
void log_of(const double* __restrict x, double* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = ::log(x[i]);
}
void tanh_of(const float* __restrict x, float* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = ::tanhf(x[i]);
}
void tanh_of(const double* __restrict x, double* __restrict out, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) out[i] = ::tanh(x[i]);
}

}  // namespace doppler
