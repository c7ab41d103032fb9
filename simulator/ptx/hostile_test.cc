#include <fmt/format.h>

#include "base/text.h"
#include "simulator/ptx/mutation.h"
#include "simulator/ptx/test_text.h"

namespace cb::ptx {
namespace {

// Text that means harm: each case would take hours, or all memory, if the work for it were not
// linear and bounded. The time limit of the test binary is the check.

using ::testing::HasSubstr;

std::string repeat(std::string_view text, size_t count) {
  std::string result;
  for (size_t i = 0; i < count; ++i) result += text;
  return result;
}

TEST(Hostile, LimitsAreNamed) {
  ParseLimits limits;
  limits.text_bytes = 100;
  EXPECT_THAT(error_of(parse(std::string(101, ' '), limits)),
              HasSubstr("the text has 101 bytes, the limit is 100"));
  limits = {};
  limits.instructions = 3;
  EXPECT_TRUE(parse_body("ret; ret; ret;", limits));
  EXPECT_THAT(error_of(parse_body("ret; ret; ret; ret;", limits)),
              HasSubstr("more than 3 instructions"));
  limits = {};
  limits.operands = 5;
  EXPECT_TRUE(parse_body("op {1, 2, 3}, 4;", limits));
  EXPECT_THAT(error_of(parse_body("op {1, 2, 3, 4}, 5;", limits)),
              HasSubstr("more than 5 operands"));
  limits = {};
  limits.registers_per_function = 100;
  EXPECT_THAT(error_of(parse_body(".reg .b32 many<101>;", limits)),
              HasSubstr("register count 101 is above the limit of 100"));
  EXPECT_THAT(error_of(parse_body(
                  ".reg .b32 x<60>, y<60>;" +
                      [] {
                        std::string uses;
                        for (int i = 0; i < 60; ++i) {
                          uses += fmt::format("op x{}, y{};", i, i);
                        }
                        return uses;
                      }(),
                  limits)),
              HasSubstr("has more than 100 registers"));
  limits = {};
  limits.initial_bytes = 10;
  EXPECT_THAT(error_of(parse_text(".global .b64 a[2] = {1, 2};", limits)),
              HasSubstr("initial values exceed the limit of 10 bytes"));
}

TEST(Hostile, ScopesNestToTheLimit) {
  std::string deep = repeat("{", 255) + "ret;" + repeat("}", 255);
  EXPECT_TRUE(parse_body(deep));
  EXPECT_THAT(error_of(parse_body("{" + deep + "}")), HasSubstr("scopes nest deeper than 256"));
  EXPECT_THAT(error_of(parse_body(repeat("{", 1000000))), HasSubstr("scopes nest deeper"));
}

TEST(Hostile, FarInitialValuesTakeNoMemory) {
  EXPECT_THAT(error_of(parse_text(".global .b8 a[2][17592186044416] = {{}, {1}};")),
              HasSubstr("initial values exceed the limit"));
}

TEST(Hostile, RegisterRangesTakeNoMemory) {
  std::string text;
  for (int i = 0; i < 20000; ++i) {
    text += fmt::format(".func f{}() {{ .reg .b32 %r<1000000>; op %r999999; }}\n", i);
  }
  Result<Module> module = parse_text(text);
  ASSERT_TRUE(module) << module.error().message();
  EXPECT_EQ(module->functions.back().registers.size(), 1u);
}

TEST(Hostile, ManyFunctionsWithLabelsStayLinear) {
  std::string text;
  for (int i = 0; i < 60000; ++i) text += fmt::format(".func f{0}() {{ L{0}: bra L{0}; }}\n", i);
  EXPECT_TRUE(parse_text(text));
}

TEST(Hostile, ManyLabelsReferencesAndScopesStayLinear) {
  std::string open = repeat("{ INNER: ", 200), close = repeat("}", 200);
  EXPECT_TRUE(parse_body(open + repeat("bra OUTER; bra INNER;", 100000) + close + "OUTER: ret;"));
  EXPECT_TRUE(parse_body(repeat("{}", 300000)));
  EXPECT_TRUE(parse_body(repeat("{ A: { bra A; } }", 100000)));
}

TEST(Hostile, SharedBranchTablesAreNotCopied) {
  std::string table = "T: .branchtargets A" + repeat(", A", 200000) + ";";
  EXPECT_TRUE(parse_body(table + "A:" + repeat("brx.idx %r1, T;", 50000)));
}

TEST(Hostile, HiddenRegistersStayLinear) {
  std::string open = repeat("{ .reg .b32 %r<2>;", 200), close = repeat("}", 200);
  EXPECT_TRUE(parse_body(open + repeat("op %r90, %r1;", 50000) + close));
}

TEST(Hostile, LocationsStayLinear) {
  std::string text;
  for (int i = 0; i < 100000; ++i) {
    text += fmt::format(".loc 1 {} 1, function_name F, inlined_at 1 {} 1\n", i + 1, i);
  }
  Result<Module> module = parse_text(".entry k() {" + text + "ret; }\n.file 1 \"a\"");
  ASSERT_TRUE(module) << module.error().message();
  EXPECT_EQ(module->locations.size(), 100001u);
  for (size_t i = 0; i < module->locations.size(); ++i) {
    EXPECT_LT(module->locations[i].inlined_at, static_cast<int64_t>(i));
  }
}

TEST(Hostile, FileIndicesTakeNoMemory) {
  EXPECT_THAT(error_of(parse_text(".file 4000000000 \"a\"")),
              HasSubstr("file index 4000000000 is above the limit"));
}

TEST(Hostile, MessagesAreShortAndPrintable) {
  std::string error = error_of(parse_body("op " + std::string(100000, 'x') + ";"));
  EXPECT_LT(error.size(), 400u);
  error = error_of(parse_body("op \x1b[31m;"));
  EXPECT_EQ(error.find('\x1b'), std::string::npos);
}

TEST(Hostile, NulBytesAndCutTextAreErrors) {
  EXPECT_FALSE(parse(std::string_view("\0", 1)));
  EXPECT_FALSE(parse(std::string(kHeader) + '\0'));
  std::string text = test_data("calls.ptx");
  size_t last = text.rfind('}');
  for (size_t length = 0; length < last; length += 7) {
    Result<Module> module = parse(text.substr(0, length));
    if (!module) {
      EXPECT_THAT(module.error().message(), testing::StartsWith("ptx:"));
    }
  }
}

// Separated by a character that PTX does not use.
constexpr std::string_view kTokens =
    "{`}`(`)`[`]`;`,`:`|`@`!`<`>`_`%`?`=`\"`/*`-1`1.5`0f3F800000`18446744073709551615`WARP_SZ`"
    "%r1`%tid.x`.reg`.b32`.global`.param`.shared`.align 8`.loc 1 1 1`.section .a {`.func f() {`"
    ".callprototype`.branchtargets`call`bra`brx.idx`generic(`{{1},{2}}`(((((((((`[9999999999]";

TEST(Mutation, DamagedPtxGivesAModuleOrAnError) {
  size_t parsed = 0, refused = 0;
  for (const char* name : {"asm_scopes", "calls", "lineinfo", "numbers", "sync", "tables"}) {
    std::string text = test_data(std::string(name) + ".ptx");
    Mutator mutator(std::string_view(name).size(), split(kTokens, '`'));
    for (int i = 0; i < 800; ++i) {
      Result<Module> module = parse(mutator.mutate(text));
      ++(module ? parsed : refused);
      if (!module) {
        ASSERT_THAT(module.error().message(), testing::StartsWith("ptx:"));
      }
    }
  }
  EXPECT_GT(parsed, 100u);
  EXPECT_GT(refused, 1000u);
}

}  // namespace
}  // namespace cb::ptx
