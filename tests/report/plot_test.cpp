#include "doppler/report/plot.h"

#include <algorithm>
#include <limits>

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

TEST(APlot, DrawsADotPerPointAndOnePolylinePerLine) {
  const std::string svg = plot_to_svg({.title = "t",
                                       .x_title = "x",
                                       .y_title = "y",
                                       .series = {{.label = "dots", .x = {1, 2, 3}, .y = {4, 5, 6}},
                                                  {.label = "joined", .x = {1, 2}, .y = {1, 2}, .line = true}}});
  EXPECT_EQ(count(svg, "<circle"), 3U);
  EXPECT_EQ(count(svg, "<polyline"), 1U);
  EXPECT_TRUE(svg.starts_with("<svg ")) << svg;
  EXPECT_TRUE(svg.ends_with("</svg>\n")) << svg;
}

TEST(APlot, MapsTheRangeWithItsMarginToTheFrame) {
  // x from 0 to 100, 5 % more at each end: -5 to 105 on the 656 pixels from 84. 0 is at 84 + 5 / 110 * 656 = 113.8,
  // 100 at 84 + 105 / 110 * 656 = 710.2. y from 0 to 10 with the lower end fixed: 0 to 10.5 on 376 pixels up from 420;
  // 10 is at 420 - 10 / 10.5 * 376 = 61.9.
  const std::string svg = plot_to_svg({.title = "",
                                       .x_title = "",
                                       .y_title = "",
                                       .series = {{.label = "", .x = {0, 100}, .y = {0, 10}}},
                                       .from_zero = true});
  EXPECT_NE(svg.find(R"(<circle cx="113.8" cy="420.0")"), std::string::npos) << svg;
  EXPECT_NE(svg.find(R"(<circle cx="710.2" cy="61.9")"), std::string::npos) << svg;
  EXPECT_EQ(svg.find(">-0<"), std::string::npos) << svg;
}

TEST(APlot, GivesBothAxesTheSameRangeForItsDiagonal) {
  // Both axes run from 10 to 20 with margins, so the middle of one is the middle of the other, 15.
  const std::string svg = plot_to_svg({.title = "",
                                       .x_title = "",
                                       .y_title = "",
                                       .series = {{.label = "", .x = {10, 15}, .y = {20, 15}}},
                                       .diagonal = true});
  EXPECT_NE(svg.find(R"(<circle cx="412.0" cy="232.0")"), std::string::npos) << svg;  // the middle of the frame
  EXPECT_EQ(count(svg, R"(stroke-dasharray="6 4")"), 1U);
}

TEST(APlot, DrawsMarksWithinItsRangeOnly) {
  const std::string svg = plot_to_svg({.title = "",
                                       .x_title = "",
                                       .y_title = "",
                                       .series = {{.label = "", .x = {0, 10}, .y = {1, 2}}},
                                       .marks = {{5, "drift"}, {50, "outside"}}});
  EXPECT_EQ(count(svg, "drift"), 1U);
  EXPECT_EQ(count(svg, "outside"), 0U);
}

TEST(APlot, EscapesWhatXmlReserves) {
  const std::string svg = plot_to_svg(
      {.title = "a < b & \"c\"\n", .x_title = "", .y_title = "", .series = {{.label = "", .x = {1}, .y = {1}}}});
  EXPECT_NE(svg.find(">a &lt; b &amp; &quot;c&quot;?<"), std::string::npos) << svg;
}

TEST(APlot, LeavesOutPointsThatAreNotFinite) {
  const double never = std::numeric_limits<double>::infinity();
  const std::string svg = plot_to_svg(
      {.title = "", .x_title = "", .y_title = "", .series = {{.label = "", .x = {1, 2, 3}, .y = {1, never, 3}}}});
  EXPECT_EQ(count(svg, "<circle"), 2U);
  EXPECT_EQ(count(svg, "inf"), 0U);
  EXPECT_EQ(count(svg, "nan"), 0U);
}

TEST(APlot, OfNothingOrOfOnePointIsStillAPicture) {
  for (const std::vector<double>& values : {std::vector<double>{}, {0}, {7}}) {
    const std::string svg =
        plot_to_svg({.title = "", .x_title = "", .y_title = "", .series = {{.label = "", .x = values, .y = values}}});
    EXPECT_EQ(count(svg, "<circle"), values.size());
    EXPECT_EQ(count(svg, "nan"), 0U) << svg;
  }
}

TEST(APlot, RefusesASeriesWithXAndYOfDifferentLengths) {
  EXPECT_THROW(
      plot_to_svg({.title = "", .x_title = "", .y_title = "", .series = {{.label = "", .x = {1}, .y = {1, 2}}}}),
      InternalError);
}

}  // namespace
}  // namespace doppler
