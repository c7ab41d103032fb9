#include "search/llm/prices.h"

#include <gtest/gtest.h>

#include "base/error.h"

namespace cb::llm {
namespace {

const std::string kTable = R"(
prices:
  - {model: p/small, input: 1, cached: 0.1, output: 4, as_of: 2026-01-31, source: a page}
  - {model: p/small-x, input: 2, output: 8, as_of: 2026-01-31, source: a page}
)";

TEST(Prices, HoldForDatedVersionsButNotForOtherModels) {
  PriceTable table = PriceTable::load_text(kTable, "prices.yaml");
  EXPECT_EQ(table.find("p/small-2026-02-01")->input, 1);
  EXPECT_EQ(table.find("p/small-20260201")->input, 1);
  EXPECT_EQ(table.find("p/small-x")->input, 2);
  EXPECT_EQ(table.find("p/small-y"), nullptr);
  EXPECT_EQ(table.find("q/small"), nullptr);
}

TEST(Prices, ChargeCachedTokensLess) {
  PriceTable table = PriceTable::load_text(kTable, "prices.yaml");
  Usage usage{.input = 1'000'000, .cached = 500'000, .output = 100'000};
  EXPECT_DOUBLE_EQ(*cost_usd(table.find("p/small"), usage), 0.5 + 0.05 + 0.4);
  EXPECT_DOUBLE_EQ(*cost_usd(table.find("p/small-x"), usage), 2 + 0.8);
}

TEST(Prices, AreUnknownRatherThanZero) {
  PriceTable table = PriceTable::load_text(kTable, "prices.yaml");
  EXPECT_EQ(cost_usd(nullptr, {.input = 1, .output = 1}), std::nullopt);
  EXPECT_EQ(cost_usd(table.find("p/small"), {.input = 1}), std::nullopt);
}

TEST(Prices, NeedADateAndASource) {
  for (const char* entry :
       {"{model: p/a, input: 1, output: 1, source: s}",
        "{model: p/a, input: 1, output: 1, as_of: yesterday, source: s}",
        "{model: p/a, input: 1, output: 1, as_of: 2026-01-01}",
        "{model: a, input: 1, output: 1, as_of: 2026-01-01, source: s}",
        "{model: p/a, input: -1, output: 1, as_of: 2026-01-01, source: s}",
        "{model: p/a, input: 1, output: 1, as_of: 2026-01-01, source: s, extra: 1}"}) {
    EXPECT_THROW(PriceTable::load_text(std::string("prices:\n  - ") + entry + "\n", "x"), Error)
        << entry;
  }
}

}  // namespace
}  // namespace cb::llm
