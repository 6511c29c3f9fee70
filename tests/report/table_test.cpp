#include "doppler/report/table.h"

#include <gtest/gtest.h>

#include "doppler/base/error.h"

namespace doppler {
namespace {

TEST(ATable, AlignsItsColumnsAndMarksTheBestRow) {
  Table table({{"method", Table::Align::left}, {"makespan"}});
  table.add_row({"heft", "1.5 ms"});
  table.add_row({"anneal", "900 µs"}, true);
  EXPECT_EQ(table.text(),
            "  method  makespan\n"
            "  heft      1.5 ms\n"
            "* anneal    900 µs\n");
}

TEST(ATable, HasNoSpacesAtTheEndOfLines) {
  Table table({{"a", Table::Align::left}, {"long title", Table::Align::left}});
  table.add_row({"x", ""});
  EXPECT_EQ(table.text(), "  a  long title\n  x\n");
}

TEST(ATable, RefusesARowOfTheWrongLength) {
  Table table({{"a"}, {"b"}});
  EXPECT_THROW(table.add_row({"1"}), InternalError);
}

TEST(ADisplayWidth, CountsWhatATerminalShows) {
  EXPECT_EQ(display_width("µs"), 2u);
  EXPECT_EQ(display_width("層"), 2u);
  EXPECT_EQ(display_width("e\u0301"), 1u);   // e with a combining accent
  EXPECT_EQ(display_width("\xff\xc3"), 2u);  // not UTF-8: one column per byte
  EXPECT_EQ(display_width(""), 0u);
}

}  // namespace
}  // namespace doppler
