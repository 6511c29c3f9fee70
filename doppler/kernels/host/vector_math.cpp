#include "doppler/kernels/host/vector_math.h"

// glibc has vector versions of these functions but shows them to the compiler only under -ffast-math, which would
// change the meaning of NaN and infinity in the whole file. Declared so, and without <cmath>, the loops below use them.
#if defined(__x86_64__) && defined(__GLIBC__) && !defined(__clang__)
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

// The loop twice, for vectors of 16 and of 32 bytes; the processor decides. Written out instead of target_clones, whose
// start-up code does not work under ThreadSanitizer.
#define DOPPLER_LOOP(name, function, T)                                    \
  void name(const T* __restrict x, T* __restrict out, std::size_t count) { \
    for (std::size_t i = 0; i < count; ++i) out[i] = ::function(x[i]);     \
  }
#if defined(__x86_64__)
#define DOPPLER_ELEMENTARY(name, function, T)                                                         \
  namespace {                                                                                         \
  DOPPLER_LOOP(name##_baseline, function, T)                                                          \
  __attribute__((target("avx2,fma"))) DOPPLER_LOOP(name##_avx2, function, T)                          \
  }                                                                                                   \
  void name(const T* x, T* out, std::size_t count) {                                                  \
    __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? name##_avx2(x, out, count)      \
                                                                    : name##_baseline(x, out, count); \
  }
#else
#define DOPPLER_ELEMENTARY(name, function, T) DOPPLER_LOOP(name, function, T)
#endif

DOPPLER_ELEMENTARY(exp_of, expf, float)
DOPPLER_ELEMENTARY(exp_of, exp, double)
DOPPLER_ELEMENTARY(log_of, logf, float)
DOPPLER_ELEMENTARY(log_of, log, double)
DOPPLER_ELEMENTARY(tanh_of, tanhf, float)
DOPPLER_ELEMENTARY(tanh_of, tanh, double)

}  // namespace doppler
