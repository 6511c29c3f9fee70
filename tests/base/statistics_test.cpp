#include "doppler/base/statistics.h"

#include <cmath>

#include <gtest/gtest.h>

namespace doppler {
namespace {

constexpr double kRounding = 1e-12;

TEST(Statistics, OfQuantilesInterpolateLinearly) {
  EXPECT_EQ(median({3, 1, 2}), 2);
  EXPECT_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_EQ(quantile({10, 20, 30}, 0.25), 15);
  EXPECT_EQ(quantile({10, 20, 30}, 1), 30);
}

TEST(Statistics, OfATrimmedMeanLeaveOutBothEnds) {
  EXPECT_EQ(trimmed_mean({100, 2, 4, 3, -50}, 0.2), 3);  // one of five at each end
  EXPECT_EQ(trimmed_mean({1, 5}, 0.2), 3);               // less than one: none
}

TEST(Statistics, OfSteadyMediansDoNotDependOnWhomTheDelaysHit) {
  // Rows of 2, 6 and 10, of which half the runs take a quarter more; the last was hit in most of its runs.
  const std::vector<double> steady =
      steady_medians({{2, 2, 2, 2.5, 2.5, 2.5}, {6, 6, 6, 7.5, 7.5, 7.5}, {10, 10, 40, 12.5, 30}});
  ASSERT_EQ(steady.size(), 3u);
  EXPECT_DOUBLE_EQ(steady[0], 2.25);
  EXPECT_DOUBLE_EQ(steady[1], 6.75);
  EXPECT_DOUBLE_EQ(steady[2], 11.25);
}

TEST(Statistics, OfCorrelationKnowStraightLinesAndMonotoneOnes) {
  const std::vector<double> x{1, 2, 3, 4}, line{5, 7, 9, 11}, falling{4, 3, 2, 1}, curved{1, 8, 27, 64},
      flat{1, 1, 1, 1};
  EXPECT_NEAR(pearson(x, line), 1, kRounding);
  EXPECT_NEAR(pearson(x, falling), -1, kRounding);
  // Deviations (-1.5, -0.5, 0.5, 1.5) and (-24, -17, 2, 39): 104 / sqrt(5 · 2390).
  EXPECT_NEAR(pearson(x, curved), 104 / std::sqrt(5 * 2390.0), kRounding);
  EXPECT_NEAR(spearman(x, curved), 1, kRounding);
  EXPECT_EQ(pearson(x, flat), 0);
}

TEST(Statistics, OfRanksShareThemBetweenEqualValues) {
  // Ranks of {1, 2, 2, 3} are {1, 2.5, 2.5, 4}: deviations (-1.5, 0, 0, 1.5) against (-1.5, -0.5, 0.5, 1.5).
  const std::vector<double> x{1, 2, 2, 3}, y{1, 2, 3, 4};
  EXPECT_NEAR(spearman(x, y), 4.5 / std::sqrt(4.5 * 5.0), kRounding);
}

TEST(TheMannWhitneyTest, IsSureOnlyOfSamplesThatHardlyOverlap) {
  const std::vector<double> low{1, 2, 3, 4, 5, 6}, high{7, 8, 9, 10, 11, 12}, mixed{1.5, 3.5, 5.5, 2.5, 4.5, 6.5};
  // u = 0, mean 18, variance 36 · 13 / 12 = 39: z = -17.5 / sqrt(39) = -2.802.
  EXPECT_NEAR(probability_not_smaller(low, high), 0.00254, 1e-5);
  EXPECT_GT(probability_not_smaller(high, low), 0.99);
  EXPECT_GT(probability_not_smaller(low, mixed), 0.05);
  EXPECT_EQ(probability_not_smaller(std::vector<double>{1, 1}, std::vector<double>{1, 1}), 1);
}

}  // namespace
}  // namespace doppler
