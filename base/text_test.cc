#include "base/text.h"

#include <gtest/gtest.h>

#include "base/tty.h"

namespace cb {
namespace {

TEST(TextTest, SplitKeepsEmptyParts) {
  EXPECT_EQ(split("a,,b", ','), (std::vector<std::string>{"a", "", "b"}));
  EXPECT_EQ(trim("  x \n"), "x");
  EXPECT_EQ(trim(" \n"), "");
}

TEST(TextTest, BytesTakePowersOf1024) {
  EXPECT_EQ(parse_bytes_or_integer("64"), 64);
  EXPECT_EQ(parse_bytes_or_integer("4K"), 4096);
  EXPECT_EQ(parse_bytes_or_integer("16M"), 16 << 20);
  EXPECT_EQ(parse_bytes_or_integer("1x"), std::nullopt);
  EXPECT_EQ(parse_bytes_or_integer("1KB"), std::nullopt);
  EXPECT_EQ(parse_bytes_or_integer(""), std::nullopt);
  EXPECT_EQ(parse_bytes_or_integer("9999999999T"), std::nullopt);
}

TEST(TextTest, PrintableStopsTerminalTricks) {
  EXPECT_EQ(printable("a\x1b[2Jb"), "a\\x1b[2Jb");
  EXPECT_EQ(printable("tab\tnewline\n"), "tab\tnewline\n");
  EXPECT_EQ(printable("caf\xc3\xa9"), "caf\xc3\xa9");
  EXPECT_EQ(printable("\xff"), "\\xff");
  EXPECT_EQ(printable("\xc2\x9b"), "\\xc2\\x9b") << "C1 control sequence introducer";
  EXPECT_EQ(printable("\xe2\x80\xae"), "\\xe2\\x80\\xae") << "right-to-left override";
  EXPECT_EQ(printable("abcdef", 3), "abc [... 3 bytes more]");
}

TEST(TextTest, TimesAndBytesForPeople) {
  EXPECT_EQ(format_time_ps(1'500'000), "1.50 us");
  EXPECT_EQ(format_time_ps(999'000), "999 ns");
  EXPECT_EQ(format_bytes(65536), "64 KiB");
  EXPECT_EQ(format_bytes(1000), "1000 B");
}

TEST(TextTest, ClosestSuggestsOnlyNearWords) {
  EXPECT_EQ(closest("ar-twoshto", {"ar-twoshot", "ar-oneshot-pull"}), "ar-twoshot");
  EXPECT_EQ(closest("banana", {"ar-twoshot"}), std::nullopt);
}

TEST(TableTest, AlignsAndColours) {
  Table table({{"name"}, {"time", Table::Align::kRight}});
  table.add_row({{"a"}, {"10", Color::kRed}});
  table.add_row({{"long"}, {"7"}});
  EXPECT_EQ(table.render(false), "name  time\na       10\nlong     7\n");
  EXPECT_NE(table.render(true).find("\x1b[31m10\x1b[0m"), std::string::npos);
}

}  // namespace
}  // namespace cb
