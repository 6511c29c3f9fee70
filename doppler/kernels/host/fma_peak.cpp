#include "doppler/kernels/host/fma_peak.h"

#include <algorithm>

#include "doppler/kernels/host/processor.h"

namespace doppler {
namespace {

// More chains than it takes to keep two units busy that each need four or five cycles, and no more than fit into the 16
// registers of the smaller instruction sets, beside a factor and an addend.
constexpr int kChains = 12;

// Does 2 · kChains · lanes operations per step, returns how many. The factor and the addend let every chain approach
// 0.5, where no number is denormal. One loop per instruction set; only the processor's own is ever called.
#define DOPPLER_FMA_BURST(name, T, bytes, instructions)                                                    \
  __attribute__((noinline)) instructions double name(int steps) {                                          \
    typedef T Vector __attribute__((vector_size(bytes)));                                                  \
    Vector factor = Vector{} + T(0.5), addend = Vector{} + T(0.25), sums[kChains] = {};                    \
    asm volatile("" : "+m"(factor), "+m"(addend)); /* unknown to the compiler */                           \
    const Vector by = factor, plus = addend;                                                               \
    for (int step = 0; step < steps; ++step)                                                               \
      _Pragma("GCC unroll 12") for (int i = 0; i < kChains; ++i) sums[i] = DOPPLER_FMA(sums[i], by, plus); \
    for (int i = 0; i < kChains; ++i) asm volatile("" : "+m"(sums[i]));                                    \
    return 2.0 * steps * kChains * (bytes / sizeof(T));                                                    \
  }
#define DOPPLER_FMA(x, y, z) ((x) * (y) + (z))
#if defined(__x86_64__)
#define DOPPLER_WITH(set) __attribute__((target(set), optimize("O3", "fp-contract=fast")))
DOPPLER_FMA_BURST(burst_f32_avx512, float, 64, DOPPLER_WITH("avx512f"))
DOPPLER_FMA_BURST(burst_f64_avx512, double, 64, DOPPLER_WITH("avx512f"))
DOPPLER_FMA_BURST(burst_f32_avx2, float, 32, DOPPLER_WITH("avx2,fma"))
DOPPLER_FMA_BURST(burst_f64_avx2, double, 32, DOPPLER_WITH("avx2,fma"))
#endif
DOPPLER_FMA_BURST(burst_f32, float, 16, )
DOPPLER_FMA_BURST(burst_f64, double, 16, )

using Burst = double (*)(int steps);

constexpr int kSteps = 20'000, kBursts = 40;  // 0.03 to 0.1 ms each

double best_rate(Burst burst) {
  double best = 0;
  for (int i = 0; i < kBursts; ++i) {
    const Seconds before = thread_time();
    const double operations = burst(kSteps);
    best = std::max(best, operations / (thread_time() - before));
  }
  return best;
}

}  // namespace

FmaPeak measure_fma_peak() {
#if defined(__x86_64__)
  const ProcessorFeatures features = processor_features();
  if (features.avx512) return {best_rate(burst_f32_avx512), best_rate(burst_f64_avx512)};
  if (features.avx2) return {best_rate(burst_f32_avx2), best_rate(burst_f64_avx2)};
#endif
  return {best_rate(burst_f32), best_rate(burst_f64)};
}

}  // namespace doppler
