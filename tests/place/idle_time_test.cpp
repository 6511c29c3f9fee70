#include "doppler/place/list/idle_time.h"

#include <gtest/gtest.h>

#include "doppler/base/rng.h"

namespace doppler {
namespace {

TEST(AnIdleTime, FindsTheFirstGapThatIsLongEnough) {
  IdleTime slot;
  slot.reserve(2, 3);  // busy 2..5
  slot.reserve(6, 4);  // busy 6..10; gaps 0..2, 5..6
  EXPECT_EQ(slot.earliest(0, 2), 0);
  EXPECT_EQ(slot.earliest(1, 1), 1);
  EXPECT_EQ(slot.earliest(1, 2), 10);  // 1..2 is too short, so is 5..6
  EXPECT_EQ(slot.earliest(3, 1), 5);
  EXPECT_EQ(slot.earliest(12, 7), 12);
  EXPECT_EQ(slot.end(), 10);
}

TEST(AnIdleTime, LetsNothingRunAcrossAReservationOfLengthZero) {
  IdleTime slot;
  slot.reserve(10, 0);
  slot.reserve(4, 0);  // gaps 0..4, 4..10
  EXPECT_EQ(slot.earliest(0, 4), 0);
  EXPECT_EQ(slot.earliest(0, 5), 4);
  EXPECT_EQ(slot.earliest(0, 7), 10);
}

// Against the definition, with enough gaps that chunks split and vanish. Times are small integers, so ties
// and exact fits are frequent.
TEST(AnIdleTime, AgreesWithAListOfBusyUnits) {
  constexpr int kHorizon = 40'000;
  std::vector<char> busy(kHorizon, 0);
  IdleTime slot;
  Rng rng(3);
  int longest_used = 0;
  for (int i = 0; i < 6000; ++i) {
    const int from = static_cast<int>(rng.below(20'000)), length = 1 + static_cast<int>(rng.below(6));
    int expected = from;
    for (int free = 0; free < length; ++expected) free = busy[static_cast<std::size_t>(expected)] ? 0 : free + 1;
    expected -= length;
    ASSERT_EQ(slot.earliest(from, length), expected);
    slot.reserve(expected, length);
    for (int t = expected; t < expected + length; ++t) busy[static_cast<std::size_t>(t)] = 1;
    longest_used = std::max(longest_used, expected + length);
  }
  EXPECT_EQ(slot.end(), longest_used);
}

}  // namespace
}  // namespace doppler
