#include "doppler/base/rng.h"

#include <cmath>

#include <gtest/gtest.h>

namespace doppler {
namespace {

constexpr int kDraws = 100'000;
// Five standard errors of a mean of kDraws values with variance at most 1.
const double kTolerance = 5.0 / std::sqrt(kDraws);

TEST(AnRng, RepeatsItselfForTheSameSeed) {
  Rng a(7), b(7), c(8);
  bool differs = false;
  for (int i = 0; i < 100; ++i) {
    const auto value = a.bits();
    EXPECT_EQ(value, b.bits());
    differs |= value != c.bits();
  }
  EXPECT_TRUE(differs);
}

TEST(AnRng, SplitsIntoStreamsWithoutAdvancing) {
  Rng a(7), b(7);
  Rng first = a.split(0), second = a.split(1);
  EXPECT_NE(first.bits(), second.bits());
  EXPECT_EQ(a.bits(), b.bits());
}

TEST(AnRng, DrawsWithTheRightMeanAndSpread) {
  Rng rng(1);
  double uniform = 0, normal = 0, square = 0;
  for (int i = 0; i < kDraws; ++i) {
    uniform += rng.uniform();
    const double z = rng.normal();
    normal += z;
    square += z * z;
    ASSERT_LT(rng.below(7), 7u);
  }
  EXPECT_NEAR(uniform / kDraws, 0.5, kTolerance);
  EXPECT_NEAR(normal / kDraws, 0.0, kTolerance);
  EXPECT_NEAR(square / kDraws, 1.0, 2 * kTolerance);  // the variance of z² is 2
}

}  // namespace
}  // namespace doppler
