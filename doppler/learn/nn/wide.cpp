#include "doppler/learn/nn/wide.h"

#include <algorithm>

#include "doppler/learn/nn/dense.h"

#if defined(__x86_64__) && defined(__GNUC__)
#define DOPPLER_WIDE [[gnu::target("avx2")]]
#else
#define DOPPLER_WIDE
#endif

namespace doppler::dense {
namespace {

// Deduced by auto it would lose its alignment.
typedef float WideLanes __attribute__((vector_size(8 * sizeof(float)), may_alias, aligned(sizeof(float))));
constexpr std::size_t kWideLanes = 8;
static_assert(kBlock == 4 * kWideLanes);

}  // namespace

bool has_wide_registers() {
#if defined(__x86_64__) && defined(__GNUC__)
  return __builtin_cpu_supports("avx2") != 0;
#else
  return false;
#endif
}

DOPPLER_WIDE void wide_multiply_add(const float* x, const float* w, float* y, std::size_t rows, std::size_t inner,
                                    std::size_t columns) {
  for (std::size_t block = 0; block + kBlock <= columns; block += kBlock)
    for (std::size_t row = 0; row < rows; ++row) {
      WideLanes* const to = reinterpret_cast<WideLanes*>(y + row * columns + block);
      WideLanes a = to[0], b = to[1], c = to[2], d = to[3];
      const float* const factors = x + row * inner;
      for (std::size_t i = 0; i < inner; ++i) {
        const WideLanes* const from = reinterpret_cast<const WideLanes*>(w + i * columns + block);
        const float factor = factors[i];
        a += factor * from[0], b += factor * from[1], c += factor * from[2], d += factor * from[3];
      }
      to[0] = a, to[1] = b, to[2] = c, to[3] = d;
    }
}

DOPPLER_WIDE void wide_outer_add(const float* x, const float* g, float* w, std::size_t rows, std::size_t inner,
                                 std::size_t columns) {
  constexpr std::size_t kBand = 64;  // Rows that stay in the cache.
  for (std::size_t begin = 0; begin < rows; begin += kBand)
    for (std::size_t block = 0; block + kBlock <= columns; block += kBlock)
      for (std::size_t i = 0; i < inner; ++i) {
        WideLanes* const to = reinterpret_cast<WideLanes*>(w + i * columns + block);
        WideLanes a = to[0], b = to[1], c = to[2], d = to[3];
        for (std::size_t row = begin; row < std::min(begin + kBand, rows); ++row) {
          const WideLanes* const from = reinterpret_cast<const WideLanes*>(g + row * columns + block);
          const float factor = x[row * inner + i];
          a += factor * from[0], b += factor * from[1], c += factor * from[2], d += factor * from[3];
        }
        to[0] = a, to[1] = b, to[2] = c, to[3] = d;
      }
}

}  // namespace doppler::dense
