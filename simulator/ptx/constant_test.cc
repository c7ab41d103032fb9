#include "simulator/ptx/constant.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace cb::ptx {
namespace {

using ::testing::HasSubstr;

Constant evaluate(const std::string& text) {
  Cursor cursor(text);
  Constant value;
  EXPECT_TRUE(parse_constant(cursor, 64, value)) << text << ": " << cursor.error().value_or("");
  EXPECT_TRUE(cursor.is(TokenKind::kEnd)) << text;
  return value;
}

int64_t integer(const std::string& text) {
  Constant value = evaluate(text);
  EXPECT_FALSE(value.is_float);
  return static_cast<int64_t>(value.bits);
}

std::string error_of_constant(const std::string& text, size_t max_depth = 64) {
  Cursor cursor(text);
  Constant value;
  EXPECT_FALSE(parse_constant(cursor, max_depth, value)) << text;
  return cursor.error().value_or("no error");
}

TEST(Constant, FollowsThePrecedenceOfC) {
  EXPECT_EQ(integer("2 + 3 * 4 - 1"), 13);
  EXPECT_EQ(integer("(2 - 3) * 1"), -1);
  EXPECT_EQ(integer("1 << 4 | 3 & 6 ^ 1"), 19);
  EXPECT_EQ(integer("10 - 3 - 2"), 5);
  EXPECT_EQ(integer("1 + 1 == 2 && 3 > 2 || 0"), 1);
  EXPECT_EQ(integer("-7 / 2 + -7 % 4"), -6);
  EXPECT_EQ(integer("0 ? 1 : 0 ? 2 : 3"), 3);
  EXPECT_EQ(integer("WARP_SZ - 1"), 31);
}

TEST(Constant, AppliesUnaryOperators) {
  EXPECT_EQ(integer("- - 5"), 5);
  EXPECT_EQ(integer("~0"), -1);
  EXPECT_EQ(integer("!7 + !0"), 1);
  EXPECT_EQ(integer("+-8"), -8);
}

TEST(Constant, DividesShiftsAndComparesBySignedness) {
  EXPECT_EQ(integer("-1 / 2"), 0);
  EXPECT_EQ(integer("-1 / 2U"), INT64_MAX);
  EXPECT_EQ(integer("-8 >> 1"), -4);
  EXPECT_EQ(integer("(.u64) -8 >> 1"), INT64_MAX - 3);
  EXPECT_EQ(integer("-1 < 1"), 1);
  EXPECT_EQ(integer("-1 < 1U"), 0);
  EXPECT_EQ(integer("1 << 64"), 0);
  EXPECT_EQ(integer("(-9223372036854775807 - 1) / -1"), INT64_MIN);
  EXPECT_EQ(integer("(-9223372036854775807 - 1) % -1"), 0);
}

TEST(Constant, ComputesWithFloats) {
  EXPECT_EQ(evaluate("1.5 + 2").number(), 3.5);
  EXPECT_EQ(evaluate("(1.0 - 0f40000000) * 3.0 / 2.0").number(), -1.5);
  EXPECT_EQ(evaluate(".5").number(), 0.5);
  Constant negative = evaluate("-0f3F800000");
  EXPECT_TRUE(negative.is_single);
  EXPECT_EQ(negative.bits, 0xbf800000u);
  EXPECT_EQ(integer("1.5 > 1"), 1);
}

TEST(Constant, RefusesWhatHasNoValue) {
  EXPECT_THAT(error_of_constant("1 / 0"), HasSubstr("division of a constant by zero"));
  EXPECT_THAT(error_of_constant("1 % (2 - 2)"), HasSubstr("division of a constant by zero"));
  EXPECT_THAT(error_of_constant("1.0 / 0.0"), HasSubstr("division of a constant by zero"));
  EXPECT_THAT(error_of_constant("1.0 % 2.0"), HasSubstr("\"%\" of a floating-point number"));
  EXPECT_THAT(error_of_constant("~1.0"), HasSubstr("\"~\" of a floating-point number"));
  EXPECT_THAT(error_of_constant("(.s64) 1.0"), HasSubstr("a cast of a floating-point number"));
  EXPECT_THAT(error_of_constant("1 +"), HasSubstr("expected a constant, found the end"));
  EXPECT_THAT(error_of_constant("(1"), HasSubstr("expected \")\""));
  EXPECT_THAT(error_of_constant("1 ? 2"), HasSubstr("expected \":\""));
}

TEST(Constant, BoundsNesting) {
  EXPECT_EQ(integer(std::string(20, '(') + "1" + std::string(20, ')')), 1);
  EXPECT_THAT(error_of_constant(std::string(100000, '(')), HasSubstr("nests too deep"));
  EXPECT_THAT(error_of_constant(std::string(100000, '-')), HasSubstr("nests too deep"));
  std::string choices;
  for (int i = 0; i < 100000; ++i) choices += "1?";
  EXPECT_THAT(error_of_constant(choices), HasSubstr("nests too deep"));
}

}  // namespace
}  // namespace cb::ptx
