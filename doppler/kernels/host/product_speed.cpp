#include "doppler/kernels/host/product_speed.h"

#include <algorithm>

#include "doppler/kernels/host/fma_peak.h"
#include "doppler/kernels/host/gemm.h"
#include "doppler/kernels/host/processor.h"

namespace doppler {
namespace {

constexpr program::Index kSize = 512;
constexpr int kProducts = 8;

template <typename Number>
double best_product() {
  const auto count = static_cast<std::size_t>(kSize * kSize);
  const std::vector<Number> a(count, Number(0.5)), b(count, Number(0.25));
  std::vector<Number> c(count);
  const GemmShape shape{.m = kSize, .n = kSize, .k = kSize, .a = {kSize, 1}, .b = {kSize, 1}, .c_row = kSize};
  gemm(shape, a.data(), b.data(), c.data());  // loads libraries and takes buffers
  double best = 0;
  for (int i = 0; i < kProducts; ++i) {
    const Seconds before = thread_time();
    gemm(shape, a.data(), b.data(), c.data());
    best = std::max(best, 2.0 * kSize * kSize * kSize / (thread_time() - before));
  }
  return best;
}

}  // namespace

std::vector<ProductSpeed> measure_products() {
  const FmaPeak peak = measure_fma_peak();
  return {{program::DType::f32, peak.f32, best_product<float>()},
          {program::DType::f64, peak.f64, best_product<double>()}};
}

}  // namespace doppler
