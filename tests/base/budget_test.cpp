#include "doppler/budget.h"

#include <gtest/gtest.h>

namespace doppler {
namespace {

TEST(ABudget, EndsAtItsDeadlineOrWhenInterrupted) {
  EXPECT_FALSE(Budget::unlimited().out_of_time());
  EXPECT_TRUE(Budget::for_time(0).out_of_time());
  EXPECT_FALSE(Budget::for_time(1e300).out_of_time());
  std::stop_source user;
  const Budget budget = Budget::for_time(3600).until(user.get_token());
  EXPECT_FALSE(budget.out_of_time());
  user.request_stop();
  EXPECT_TRUE(budget.out_of_time());
}

TEST(ABudget, SharesWhatIsLeft) {
  EXPECT_EQ(Budget::for_evaluations(1000).share(0.25).evaluations(), 250u);
  EXPECT_EQ(Budget::for_evaluations(1000).at_most(2000).evaluations(), 1000u);
  EXPECT_EQ(Budget::for_evaluations(1000).at_most(20).evaluations(), 20u);
  EXPECT_LE(Budget::for_time(100).share(0.5).time_left(), 50.0);
  EXPECT_GT(Budget::for_time(100).share(0.5).time_left(), 40.0);
  EXPECT_FALSE(Budget::unlimited().share(0.5).has_deadline());
  EXPECT_EQ(Budget::for_evaluations(1000).less(300).evaluations(), 700u);
  EXPECT_EQ(Budget::for_evaluations(1000).less(3000).evaluations(), 1u);
  EXPECT_EQ(Budget::unlimited().less(300).evaluations(), Budget::kUnlimited);
}

TEST(ABudget, IsShiftedByTime) {
  EXPECT_TRUE(Budget::for_time(100).shifted_by(-101).out_of_time());
  EXPECT_GT(Budget::for_time(0).shifted_by(100).time_left(), 90.0);
  EXPECT_FALSE(Budget::unlimited().shifted_by(-1).has_deadline());
}

TEST(ABudget, OfProcessorTimeEndsWhenTheProcessHasWorkedForSoLong) {
  constexpr Seconds kTime = 0.02;
  const auto processor = [] { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; };
  const Seconds before = processor();
  const Budget budget = Budget::for_processor_time(kTime);
  EXPECT_FALSE(budget.out_of_time());
  EXPECT_LE(budget.share(0.5).time_left(), kTime / 2);
  EXPECT_GT(budget.shifted_by(100).time_left(), 99.0);
  while (!budget.out_of_time()) {
  }
  constexpr Seconds kResolution = 1e-3;  // of std::clock(), generously
  EXPECT_GE(processor() - before, kTime - kResolution);
}

TEST(AWatch, LetsShortWorkFinishAndEndsLongWork) {
  Watch late(Budget::for_time(0));
  EXPECT_NO_THROW(late.step(1000));
  EXPECT_THROW(late.step(1'000'000), OutOfTime);
  Watch early(Budget::for_time(3600));
  EXPECT_NO_THROW(early.step(1'000'000));
}

}  // namespace
}  // namespace doppler
