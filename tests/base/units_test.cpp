#include "doppler/units.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

TEST(ADuration, IsReadWithItsUnit) {
  EXPECT_DOUBLE_EQ(parse_duration("30s", "--time"), 30.0);
  EXPECT_DOUBLE_EQ(parse_duration("500ms", "--time"), 0.5);
  EXPECT_DOUBLE_EQ(parse_duration("2m", "--time"), 120.0);
  EXPECT_DOUBLE_EQ(parse_duration("1.5h", "--time"), 5400.0);
  EXPECT_DOUBLE_EQ(parse_duration("7", "--time"), 7.0);
}

TEST(ADuration, IsRefusedWithWhereFoundAndRequired) {
  for (const char* text : {"", "s", "-1s", "3 s", "1e999", "nan", "10days"}) {
    try {
      parse_duration(text, "--time");
      FAIL() << text;
    } catch (const InputError& error) {
      EXPECT_EQ(error.what(),
                fmt::format("--time: found '{}'; required a duration such as 500ms, 30s, 2m or 1h", text));
    }
  }
}

TEST(ASize, IsReadWithItsUnit) {
  EXPECT_EQ(parse_bytes("16GiB", "--memory"), gibibytes(16));
  EXPECT_EQ(parse_bytes("600MB", "--memory"), 600'000'000u);
  EXPECT_THROW(parse_bytes("1e30GB", "--memory"), InputError);
}

TEST(ANumber, IsShownWithAFittingUnit) {
  EXPECT_EQ(format_seconds(0.00123), "1.23 ms");
  EXPECT_EQ(format_seconds(12.5), "12.5 s");
  EXPECT_EQ(format_bytes(1536), "1.5 KiB");
}

}  // namespace
}  // namespace doppler
