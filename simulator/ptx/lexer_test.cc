#include "simulator/ptx/lexer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <bit>
#include <vector>

namespace cb::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::vector<std::string> texts_of(std::string_view text) {
  Lexer lexer(text);
  std::vector<std::string> texts;
  for (Token token = lexer.next(); token.kind != TokenKind::kEnd; token = lexer.next()) {
    texts.emplace_back(token.text);
  }
  EXPECT_EQ(lexer.error(), "");
  return texts;
}

std::string error_of_text(std::string_view text) {
  Lexer lexer(text);
  while (lexer.next().kind != TokenKind::kEnd) {
  }
  return lexer.error();
}

Token first_of(std::string_view text) { return Lexer(text).next(); }

TEST(Lexer, SplitsInstructionsWithoutBlanks) {
  EXPECT_THAT(texts_of("@!%p1 atom.add.u32 %r1,[%rd7+-8],_;"),
              ElementsAre("@", "!", "%p1", "atom", ".add", ".u32", "%r1", ",", "[", "%rd7", "+",
                          "-", "8", "]", ",", "_", ";"));
  EXPECT_THAT(texts_of("$L__BB0_2:{bra LAB;}"),
              ElementsAre("$L__BB0_2", ":", "{", "bra", "LAB", ";", "}"));
}

TEST(Lexer, KeepsQualifiedModifiersInOneWord) {
  EXPECT_THAT(texts_of("ld.global.L1::no_allocate.L2::128B.v4 x.mbarrier::complete_tx::bytes"),
              ElementsAre("ld", ".global", ".L1::no_allocate", ".L2::128B", ".v4", "x",
                          ".mbarrier::complete_tx::bytes"));
}

TEST(Lexer, SkipsCommentsAndCountsLines) {
  Lexer lexer("// one\n/* two\n three */ a // b\n c");
  EXPECT_EQ(lexer.next().line, 3u);
  Token last = lexer.next();
  EXPECT_EQ(last.text, "c");
  EXPECT_EQ(last.line, 4u);
  EXPECT_EQ(lexer.next().kind, TokenKind::kEnd);
}

TEST(Lexer, ReadsIntegersOfEveryBase) {
  EXPECT_EQ(first_of("1234").bits, 1234u);
  EXPECT_EQ(first_of("0xFfFFffFFffFFffFF").bits, ~uint64_t{0});
  EXPECT_EQ(first_of("017").bits, 15u);
  EXPECT_EQ(first_of("0").bits, 0u);
  EXPECT_EQ(first_of("0b101").bits, 5u);
  EXPECT_TRUE(first_of("7U").is_unsigned);
  EXPECT_FALSE(first_of("9223372036854775807").is_unsigned);
  EXPECT_TRUE(first_of("9223372036854775808").is_unsigned);
}

TEST(Lexer, ReadsFloatPatternsAndDecimals) {
  Token single = first_of("0f3F800000");
  EXPECT_TRUE(single.is_single);
  EXPECT_EQ(std::bit_cast<float>(static_cast<uint32_t>(single.bits)), 1.0f);
  Token twice = first_of("0D4000000000000000");
  EXPECT_FALSE(twice.is_single);
  EXPECT_EQ(std::bit_cast<double>(twice.bits), 2.0);
  EXPECT_EQ(std::bit_cast<double>(first_of("1.25e1").bits), 12.5);
  EXPECT_EQ(std::bit_cast<double>(first_of("1E3").bits), 1000.0);
  EXPECT_EQ(std::bit_cast<double>(first_of("3.").bits), 3.0);
}

TEST(Lexer, RefusesBrokenNumbers) {
  EXPECT_THAT(error_of_text("0f3F8"), HasSubstr("0f needs exactly 8 hexadecimal digits"));
  EXPECT_THAT(error_of_text("0f3F8000001"), HasSubstr("exactly 8"));
  EXPECT_THAT(error_of_text("0x"), HasSubstr("\"0x\" is not a number"));
  EXPECT_THAT(error_of_text("08"), HasSubstr("\"08\" is not a number"));
  EXPECT_THAT(error_of_text("12ab"), HasSubstr("\"12ab\" is not a number"));
  EXPECT_THAT(error_of_text("18446744073709551616"), HasSubstr("does not fit in 64 bits"));
  EXPECT_THAT(error_of_text("1e999"), HasSubstr("a double can hold"));
}

TEST(Lexer, RefusesUnfinishedText) {
  EXPECT_EQ(error_of_text("a /* b"), "comment /* without an end");
  EXPECT_EQ(error_of_text("\"abc\n\""), "string without a closing quote");
  EXPECT_EQ(error_of_text("\"abc\\"), "string without a closing quote");
  EXPECT_EQ(error_of_text("ld. x"), "a dot without a word");
  EXPECT_EQ(error_of_text("a\x01"), "character \"\\x01\" has no meaning in PTX");
  EXPECT_EQ(error_of_text("%"), "");
}

}  // namespace
}  // namespace cb::ptx
