#include "doppler/kernels/onnx/tensor_region.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace doppler::model {
namespace {

using program::Rect;

TEST(ARegionBelowAView, IsTheSmallestThatHasEveryElement) {
  // [4, 6] seen as [24]: elements 7 to 9 are in row 1, columns 1 to 3.
  EXPECT_EQ(region_below_view({4, 6}, {24}, {{7}, {10}}), (Rect{{1, 1}, {2, 4}}));
  // Elements 5 and 6 are the last of row 0 and the first of row 1, so that every column lies between them.
  EXPECT_EQ(region_below_view({4, 6}, {24}, {{5}, {7}}), (Rect{{0, 0}, {2, 6}}));
  // [2, 3, 4] seen as [6, 4]: rows 1 and 2, columns 1 and 2, are [0, 1..2, 1..2].
  EXPECT_EQ(region_below_view({2, 3, 4}, {6, 4}, {{1, 1}, {3, 3}}), (Rect{{0, 1, 1}, {1, 3, 3}}));
  // [2, 8] seen as [2, 2, 4]: the second half of each row.
  EXPECT_EQ(region_below_view({2, 8}, {2, 2, 4}, {{0, 1, 0}, {2, 2, 4}}), (Rect{{0, 4}, {2, 8}}));
  EXPECT_EQ(region_below_view({1, 1}, {}, {{}, {}}), Rect::whole({1, 1}));
  EXPECT_EQ(region_below_view({4, 6}, {24}, {{3}, {3}}).volume(), 0);
}

TEST(ACopyToRowMajor, WritesItsRegionWhereItLiesInTheWhole) {
  // Two channels of 1 x 3 with channels last: a0 b0 a1 b1 a2 b2, of which column 1 is wanted.
  const TensorType from{Element::u8, {1, 2, 1, 3}, Layout::channels_last};
  const unsigned char values[] = {10, 20, 11, 21, 12, 22};
  unsigned char whole[] = {0, 0, 0, 0, 0, 0};
  region_to_row_major(from, {{0, 0, 0, 1}, {1, 2, 1, 2}})
      .run(reinterpret_cast<const std::byte*>(values), reinterpret_cast<std::byte*>(whole));
  const unsigned char expected[] = {0, 11, 0, 0, 21, 0};
  EXPECT_TRUE(std::equal(std::begin(whole), std::end(whole), expected));
}

}  // namespace
}  // namespace doppler::model
