// The pipeline with answers that hold no candidate: nothing is built or run.

#include "search/eval/eval_run.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <mutex>
#include <nlohmann/json.hpp>

#include "base/file.h"

namespace cb::eval {
namespace {

using results::Record;
using results::Verdict;

/// Answers by the text of the question; counts, and fails from the n-th on.
class ScriptedClient : public llm::Client {
 public:
  llm::Completion complete(const llm::Request& request) override {
    std::lock_guard lock(mutex_);
    ++asked;
    if (asked > answers_before_failure) {
      return tl::unexpected(llm::Failure{failure, "no more"});
    }
    llm::Reply reply;
    reply.text = "I do not know. " + std::to_string(request.messages.size());
    reply.usage = {.input = 10, .output = 5};
    return reply;
  }

  size_t asked = 0;
  size_t answers_before_failure = SIZE_MAX;
  llm::FailureKind failure = llm::FailureKind::kQuota;

 private:
  std::mutex mutex_;
};

class EvalRunTest : public ::testing::Test {
 protected:
  EvalRunTest() {
    for (const char* id : {"ar-oneshot-pull", "ag-fullmesh"}) {
      cards_.push_back(
          value_or_throw(tasks::load_card(COMMBENCH_SOURCE_DIR "/tasks/" + std::string(id))));
    }
    for (const tasks::Card& card : cards_) plan_.cards.push_back(&card);
    plan_.model = "test/model";
    plan_.samples = 2;
    plan_.rounds = 3;
  }

  EvalOutcome run(results::RunDirectory& directory) {
    auto platform = harness::make_platform("sim:h100x8", layout_);
    EvalOptions options;
    options.most_requests = 4;
    options.lanes = 2;
    return evaluate_model(layout_, *platform, RunKey::random(), plan_, client_, directory, options);
  }

  harness::Layout layout_ = harness::Layout::of_this_build();
  std::vector<tasks::Card> cards_;
  EvalPlan plan_;
  ScriptedClient client_;
  TempDir folder_{"eval-run-"};
};

TEST_F(EvalRunTest, AsksEveryRoundOfEverySampleOnce) {
  auto directory = results::RunDirectory::create(folder_.path(), Json::object());
  EvalOutcome outcome = run(directory);
  EXPECT_FALSE(outcome.stopped_by);
  EXPECT_EQ(client_.asked, 12u);
  EXPECT_EQ(outcome.progress.finished, 4u);
  auto records = value_or_throw(results::read_records(directory.path()));
  ASSERT_EQ(records.size(), 12u);
  for (const Record& record : records) {
    EXPECT_EQ(record.verdict, Verdict::kNoAnswer);
    EXPECT_EQ(record.reason, "no_code");
    EXPECT_EQ(record.generation->model, "test/model");
    EXPECT_EQ(record.generation->input_tokens, 10u);
    EXPECT_EQ(record.attempt,
              plan_.attempt_number(record.generation->sample, record.generation->round));
    std::string reply = directory.attempt_folder(record.task, record.attempt) + "/reply.json";
    // The question of round r has the r answers before it, and what was said of each.
    EXPECT_NE(read_file(reply)->find("know. " + std::to_string(1 + 2 * record.generation->round)),
              std::string::npos);
  }
}

TEST_F(EvalRunTest, StopsWithoutQuotaAndGoesOnWithoutAskingAgain) {
  auto directory = results::RunDirectory::create(folder_.path(), Json::object());
  client_.answers_before_failure = 5;
  EvalOutcome outcome = run(directory);
  ASSERT_TRUE(outcome.stopped_by);
  EXPECT_EQ(outcome.stopped_by->kind, llm::FailureKind::kQuota);
  EXPECT_EQ(value_or_throw(results::read_records(directory.path())).size(), 5u);

  client_.asked = 0;
  client_.answers_before_failure = SIZE_MAX;
  auto again = results::RunDirectory::open(directory.path());
  EXPECT_FALSE(run(again).stopped_by);
  EXPECT_EQ(client_.asked, 7u);
  EXPECT_EQ(value_or_throw(results::read_records(directory.path())).size(), 12u);

  client_.asked = 0;
  EXPECT_EQ(run(again).progress.finished, 4u);
  EXPECT_EQ(client_.asked, 0u);
}

TEST_F(EvalRunTest, PaysForNoReplyTwiceWhenItWasKilledBeforeTheRecord) {
  auto directory = results::RunDirectory::create(folder_.path(), Json::object());
  plan_.samples = 1;
  plan_.rounds = 1;
  run(directory);
  std::filesystem::remove(directory.path() + "/records.jsonl");
  client_.asked = 0;
  auto again = results::RunDirectory::open(directory.path());
  run(again);
  EXPECT_EQ(client_.asked, 0u);
  EXPECT_EQ(value_or_throw(results::read_records(directory.path())).size(), 2u);
}

TEST_F(EvalRunTest, TakesARefusedRequestForTheModelsFailureOnlyOnceOneWasTaken) {
  auto directory = results::RunDirectory::create(folder_.path(), Json::object());
  client_.failure = llm::FailureKind::kBadRequest;
  client_.answers_before_failure = 0;
  EXPECT_TRUE(run(directory).stopped_by);
  client_.answers_before_failure = client_.asked + 4;
  EXPECT_FALSE(run(directory).stopped_by);
  size_t refused = 0;
  for (const Record& record : value_or_throw(results::read_records(directory.path()))) {
    refused += record.reason == "refusal" || record.generation->finish == "refusal";
  }
  EXPECT_EQ(refused, 8u);
}

TEST(AttemptKey, DiffersForEachAttempt) {
  RunKey key = RunKey::random();
  EXPECT_NE(attempt_key(key, "a", 1).hex(), attempt_key(key, "a", 2).hex());
  EXPECT_NE(attempt_key(key, "a", 1).hex(), attempt_key(key, "b", 1).hex());
  EXPECT_EQ(attempt_key(key, "a", 1).hex(), attempt_key(key, "a", 1).hex());
}

}  // namespace
}  // namespace cb::eval
