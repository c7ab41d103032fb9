#include "search/llm/metered_client.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "search/llm/test_clock.h"

namespace cb::llm {
namespace {

Price price() {
  Price price;
  price.input = 10;
  price.output = 100;
  return price;
}

Request question(uint64_t input_tokens, uint64_t output_tokens) {
  Request request;
  request.system.assign(4 * input_tokens, 'x');
  request.max_output_tokens = output_tokens;
  return request;
}

TEST(Meter, RefusesWhatMightPassTheLimitBeforeItIsSent) {
  auto inner = std::make_shared<ListClient>(std::vector{answered("a", 100, 50)});
  auto meter = std::make_shared<Meter>(Budget{.max_tokens = 1000}, nullptr);
  auto client = metered_client(inner, meter);
  EXPECT_TRUE(client->complete(question(100, 800)).has_value());
  EXPECT_TRUE(client->complete(question(100, 750)).has_value());
  auto third = client->complete(question(100, 750));
  EXPECT_EQ(third.error().kind, FailureKind::kBudget);
  EXPECT_EQ(inner->asked, 2u);
  EXPECT_EQ(meter->spending().input_tokens, 200u);
}

TEST(Meter, AddsUpCost) {
  Price known = price();
  auto meter = std::make_shared<Meter>(Budget{.max_cost_usd = 0.02}, &known);
  auto inner = std::make_shared<ListClient>(std::vector{answered("a", 500, 50)});
  auto client = metered_client(inner, meter);
  EXPECT_TRUE(client->complete(question(500, 100)).has_value());
  EXPECT_DOUBLE_EQ(*meter->spending().cost_usd, 0.01);
  EXPECT_EQ(client->complete(question(500, 100)).error().kind, FailureKind::kBudget);
}

TEST(Meter, HoldsACostLimitWhereRepliesAreNotCounted) {
  Price known = price();
  auto meter = std::make_shared<Meter>(Budget{.max_cost_usd = 0.03}, &known);
  auto inner = std::make_shared<ListClient>(std::vector{answered("a")});
  auto client = metered_client(inner, meter);
  EXPECT_TRUE(client->complete(question(500, 100)).has_value());
  EXPECT_EQ(meter->spending().cost_usd, std::nullopt);
  EXPECT_EQ(meter->spending().uncounted, 1u);
  EXPECT_TRUE(client->complete(question(500, 100)).has_value());
  EXPECT_EQ(client->complete(question(500, 100)).error().kind, FailureKind::kBudget);
}

TEST(Meter, CannotKeepACostLimitWithoutAPrice) {
  EXPECT_THROW(Meter(Budget{.max_cost_usd = 1}, nullptr), Error);
}

TEST(Meter, GivesAReservationBackWhenARequestFails) {
  auto meter = std::make_shared<Meter>(Budget{.max_tokens = 300}, nullptr);
  auto inner = std::make_shared<ListClient>(
      std::vector{failed(FailureKind::kServer), answered("a", 100, 10)});
  auto client = metered_client(inner, meter);
  EXPECT_FALSE(client->complete(question(100, 200)).has_value());
  EXPECT_TRUE(client->complete(question(100, 200)).has_value());
  EXPECT_EQ(meter->spending().failures, 1u);
}

TEST(Meter, GoesOnWhereAnInterruptedRunStopped) {
  Meter meter(Budget{.max_tokens = 1000}, nullptr);
  Spending earlier;
  earlier.input_tokens = 900;
  earlier.cost_usd = std::nullopt;
  meter.add(earlier);
  EXPECT_TRUE(meter.reserve(question(100, 100)).has_value());
  EXPECT_EQ(meter.spending().cost_usd, std::nullopt);
}

}  // namespace
}  // namespace cb::llm
