#include "search/llm/patient_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "search/llm/test_clock.h"

namespace cb::llm {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;

struct PatientRig {
  std::shared_ptr<ListClient> inner;
  std::shared_ptr<TestClock> clock = std::make_shared<TestClock>();
  std::unique_ptr<Client> client;

  PatientRig(std::vector<Completion> answers, PatienceOptions options = {})
      : inner(std::make_shared<ListClient>(std::move(answers))),
        client(patient_client(inner, options, clock)) {}
};

TEST(PatientClient, WaitsAsLongAsTheProviderSays) {
  PatientRig rig({failed(FailureKind::kRateLimit, 17.0), answered("ok")});
  auto done = rig.client->complete({});
  EXPECT_EQ(done->text, "ok");
  EXPECT_EQ(done->rate_limited, 1u);
  EXPECT_THAT(rig.clock->sleeps, ElementsAre(17.0));
}

TEST(PatientClient, DoublesItsBackoffUpToAnEnd) {
  PatientRig rig({failed(FailureKind::kServer)},
                 {.max_attempts = 6, .first_backoff_s = 2, .longest_backoff_s = 10});
  EXPECT_FALSE(rig.client->complete({}).has_value());
  EXPECT_EQ(rig.inner->asked, 6u);
  EXPECT_THAT(rig.clock->sleeps, ElementsAre(1, 2, 4, 5, 5));
}

TEST(PatientClient, DoesNotAskAgainWhereThatCannotHelp) {
  for (FailureKind kind : {FailureKind::kQuota, FailureKind::kAuthentication,
                           FailureKind::kBadRequest, FailureKind::kTooLarge}) {
    PatientRig rig({failed(kind), answered("ok")});
    EXPECT_EQ(rig.client->complete({}).error().kind, kind);
    EXPECT_EQ(rig.inner->asked, 1u);
  }
}

TEST(PatientClient, KeepsItsDeadline) {
  PatientRig rig({failed(FailureKind::kRateLimit, 100.0)}, {.max_attempts = 50, .deadline_s = 350});
  auto done = rig.client->complete({});
  EXPECT_EQ(done.error().kind, FailureKind::kRateLimit);
  EXPECT_EQ(rig.inner->asked, 4u);
}

TEST(PatientClient, TakesAProviderThatOnlyFailsToBeGone) {
  PatientRig rig({failed(FailureKind::kNetwork)}, {.max_attempts = 3, .breaker_failures = 6});
  rig.client->complete({});
  rig.client->complete({});
  EXPECT_EQ(rig.inner->asked, 6u);
  auto done = rig.client->complete({});
  EXPECT_EQ(rig.inner->asked, 6u);
  EXPECT_NE(done.error().message.find("6 failures in a row"), std::string::npos);
}

TEST(PatientClient, ForgetsFailuresAfterASuccess) {
  PatientRig rig(
      {failed(FailureKind::kServer), answered("a"), failed(FailureKind::kServer), answered("b")},
      {.breaker_failures = 2});
  EXPECT_TRUE(rig.client->complete({}).has_value());
  EXPECT_TRUE(rig.client->complete({}).has_value());
}

TEST(PatientClient, AsksNoFasterThanItMay) {
  PatientRig rig({answered("ok")}, {.requests_per_minute = 2});
  for (int i = 0; i < 4; ++i) rig.client->complete({});
  EXPECT_THAT(rig.clock->sleeps, ElementsAre(30.0, 30.0));
}

TEST(PatientClient, CountsTokensAgainstTheirLimit) {
  PatientRig rig({answered("ok", 900, 100)}, {.tokens_per_minute = 1000});
  rig.client->complete({});
  EXPECT_TRUE(rig.clock->sleeps.empty());
  Request request;
  request.system.assign(4 * 500, 'x');
  rig.client->complete(request);
  EXPECT_THAT(rig.clock->sleeps, ElementsAre(DoubleNear(30, 1e-6)));
}

}  // namespace
}  // namespace cb::llm
