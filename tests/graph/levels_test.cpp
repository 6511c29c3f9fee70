#include "doppler/graph/levels.h"

#include <gtest/gtest.h>

namespace doppler {
namespace {

// 0 -> 1 -> 3, 0 -> 2 -> 3 and a lone op 4; one tensor per op but 3 and 4.
Graph diamond_and_loner() {
  GraphBuilder builder("diamond");
  for (int i = 0; i < 5; ++i) builder.add_op({});
  for (OpId op = 0; op < 3; ++op) builder.add_tensor(op, 1);
  builder.add_consumer(0, 1);
  builder.add_consumer(0, 2);
  builder.add_consumer(1, 3);
  builder.add_consumer(2, 3);
  return std::move(builder).build();
}

const std::vector<Seconds> kOpTime = {1, 2, 5, 3, 4};

TEST(Levels, AreTheLongestPathsAboveAndBelow) {
  // top:    1 and 2 start after op 0, at 1; 3 after the longer of 1+2 and 1+5, at 6.
  // bottom: 3 -> 3; 1 -> 2+3 = 5; 2 -> 5+3 = 8; 0 -> 1+8 = 9, the longest.
  const Levels found = levels(diamond_and_loner(), kOpTime, {});
  EXPECT_EQ(found.top, (std::vector<Seconds>{0, 1, 1, 6, 0}));
  EXPECT_EQ(found.bottom, (std::vector<Seconds>{9, 5, 8, 3, 4}));
  EXPECT_EQ(found.longest, 9);
}

TEST(Levels, CountTransfersOnEveryEdge) {
  // Tensor times 10, 20, 0. top: 1 and 2 at 1+10 = 11; 3 at max(11+2+20, 11+5+0) = 33.
  // bottom: 1 -> 2+20+3 = 25; 2 -> 5+0+3 = 8; 0 -> 1+10+25 = 36.
  const Levels found = levels(diamond_and_loner(), kOpTime, std::vector<Seconds>{10, 20, 0});
  EXPECT_EQ(found.top, (std::vector<Seconds>{0, 11, 11, 33, 0}));
  EXPECT_EQ(found.bottom, (std::vector<Seconds>{36, 25, 8, 3, 4}));
  EXPECT_EQ(found.longest, 36);
}

TEST(Depths, CountEdgesFromTheSources) {
  EXPECT_EQ(depths(diamond_and_loner()), (std::vector<std::uint32_t>{0, 1, 1, 2, 0}));
}

}  // namespace
}  // namespace doppler
