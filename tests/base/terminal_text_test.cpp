#include "doppler/base/terminal_text.h"

#include <gtest/gtest.h>

namespace doppler {
namespace {

constexpr std::size_t kPlenty = 1000;

TEST(ATerminalText, LeavesOrdinaryTextAsItIs) {
  for (const char* text : {"", "op0", "a b\\n", "µs 層 é 😀"}) EXPECT_EQ(for_terminal(text, kPlenty), text);
}

TEST(ATerminalText, WritesOutWhatATerminalWouldObey) {
  EXPECT_EQ(for_terminal("a\nb\tc\x1b[31m\x7f", kPlenty), "a\\nb\\tc\\x1b[31m\\x7f");
  EXPECT_EQ(for_terminal(std::string("x\0y", 3), kPlenty), "x\\x00y");
  EXPECT_EQ(for_terminal("\u009b31m", kPlenty), "\\u009b31m");                            // CSI in one character
  EXPECT_EQ(for_terminal("\u202etxt\u2066\u200b", kPlenty), "\\u202etxt\\u2066\\u200b");  // reorder, isolate, invisible
}

TEST(ATerminalText, WritesOutBytesThatAreNoUtf8) {
  EXPECT_EQ(for_terminal("\xff", kPlenty), "\\xff");
  EXPECT_EQ(for_terminal("\xc3", kPlenty), "\\xc3");                    // cut short
  EXPECT_EQ(for_terminal("\xc0\x9b", kPlenty), "\\xc0\\x9b");           // overlong: some terminals read ESC's neighbour
  EXPECT_EQ(for_terminal("\xed\xa0\x80", kPlenty), "\\xed\\xa0\\x80");  // half of a surrogate pair
  EXPECT_EQ(for_terminal("\x9b", kPlenty), "\\x9b");                    // CSI in one byte
}

TEST(ATerminalText, LeavesOutTheMiddleOfWhatIsTooLong) {
  // Five bytes at the front; at the back five less the three of the ellipsis.
  EXPECT_EQ(for_terminal("0123456789abcdef", 10), "01234…ef");
  // Characters stay whole: "µ" has two bytes, so that two fit into five bytes, and one into two.
  EXPECT_EQ(for_terminal("µµµµµµµµ", 10), "µµ…µ");
  EXPECT_LE(for_terminal(std::string(1 << 20, '\n'), 100).size(), 100u);
}

TEST(ATerminalText, StaysAsItIsWhenItIsMadeAgain) {
  const std::string once = for_terminal("\x1b[2J\xff" + std::string(500, 'x'), 100);
  EXPECT_EQ(for_terminal(once, 100), once);
}

}  // namespace
}  // namespace doppler
