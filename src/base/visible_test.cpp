#include "base/visible.h"

#include <gtest/gtest.h>

namespace maya::base {
namespace {

TEST(Visible, PlainTextIsNotChanged) {
  EXPECT_EQ(visible("gemm bf16, 3 × 4 μs"), "gemm bf16, 3 × 4 μs");
  EXPECT_EQ(visible(""), "");
}

TEST(Visible, EscapeSequencesAreEscaped) {
  EXPECT_EQ(visible("a\x1b[31mred\x1b]0;title\x07"), "a\\e[31mred\\e]0;title\\x07");
  EXPECT_EQ(visible("one\rtwo\nthree\t\b"), "one\\rtwo\\nthree\\t\\x08");
  EXPECT_EQ(visible("\x7f"), "\\x7f");
  EXPECT_EQ(visible(std::string_view("a\0b", 3)), "a\\x00b");
  EXPECT_EQ(visible("\u009b31m"), "\\u{009b}31m") << "C1 control introducer";
}

TEST(Visible, InvalidUtf8IsEscaped) {
  EXPECT_EQ(visible("\xff\xc0\x80"), "\\xff\\xc0\\x80");
  EXPECT_EQ(visible("\xe2\x82"), "\\xe2\\x82") << "cut off";
  EXPECT_EQ(visible("\xed\xa0\x80"), "\\xed\\xa0\\x80") << "surrogate";
  EXPECT_EQ(visible("\x9b\x33\x31m"), "\\x9b31m") << "an 8-bit control introducer";
}

TEST(Visible, BidirectionalControlsAreEscaped) {
  EXPECT_EQ(visible("a\u202eb\u200b\ufeff"), "a\\u{202e}b\\u{200b}\\u{feff}");
}

TEST(Visible, VisibleLinesKeepsLineFeeds) { EXPECT_EQ(visible_lines("a\nb\x1b"), "a\nb\\e"); }

}  // namespace
}  // namespace maya::base
