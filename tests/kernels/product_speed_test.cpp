#include "doppler/kernels/host/product_speed.h"

#include <cstdlib>

#include <gtest/gtest.h>

#include "doppler/kernels/host/fma_peak.h"
#include "doppler/kernels/host/processor.h"
#include "tests/support/sanitized.h"

namespace doppler {
namespace {

TEST(TheFmaPeak, IsOfVectorsAndTwiceAsHighInHalfThePrecision) {
  const FmaPeak peak = measure_fma_peak();
  // A scalar operation per cycle would be 1 to 6 GFLOP/s; two units of 16 lanes at 6 GHz are 384.
  EXPECT_GT(peak.f32, 6e9);
  EXPECT_LT(peak.f32, 800e9);
  EXPECT_NEAR(peak.f32 / peak.f64, 2, 0.3);  // The frequency may change in between.
}

// Libraries that go by the processor's name reach a fifth.
TEST(Products, ReachMoreThanHalfOfThePeak) {
  if (test::kSanitized) GTEST_SKIP() << "a sanitizer slows down what calls the libraries";
  ASSERT_EQ(std::getenv("OPENBLAS_CORETYPE"), nullptr) << "it is the test that OpenBLAS needs not be told";
  for (const ProductSpeed& speed : measure_products()) {
    EXPECT_GT(speed.products, 0.5 * speed.peak) << to_string(speed.dtype);
    EXPECT_LT(speed.products, 1.05 * speed.peak) << to_string(speed.dtype);
  }
  EXPECT_EQ(std::getenv("OPENBLAS_CORETYPE"), nullptr);  // and whoever is started by us is not told either
}

}  // namespace
}  // namespace doppler
