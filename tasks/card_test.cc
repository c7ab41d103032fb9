#include "tasks/card.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <map>
#include <set>

#include "tasks/testing/task_folder.h"

namespace cb::tasks {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using testing::TaskFolder;

constexpr char kCases[] = R"(  - id: first
    world_size: 2
    count: [1, 0, 65]
    steps: {min: 3, max: 5}
    measured: true
  - id: second
    world_size: 3
    dtype: bf16
    count: {min: 5, max: 9}
    steps: {min: 2, max: 2}
    calls: 3
    skew_us: 20
)";

TaskFolder sample() { return {"collective", "collective: all-reduce, dtype: f32", kCases}; }

std::string error_of(const TaskFolder& folder) {
  Result<Card> card = load_card(folder.path());
  return card ? "no error" : card.error().message();
}

StepKey key_of(const RunKey& key, const std::string& case_id, int step = 0) {
  return {&key, "hash", case_id, step};
}

TEST(Card, HoldsWhatTheFilesSay) {
  Card card = sample().load();
  EXPECT_EQ(card.id, "sample");
  EXPECT_EQ(card.family->name(), "collective");
  EXPECT_EQ(card.host_bytes_max, 65536u);
  ASSERT_EQ(card.cases.size(), 2u);
  EXPECT_TRUE(card.cases[0].measured);
  EXPECT_EQ(card.cases[0].word("dtype"), "f32");
  EXPECT_EQ(card.cases[0].pool, 2);
  EXPECT_EQ(card.cases[1].word("dtype"), "bf16") << "a case overrides the card's parameter";
  EXPECT_EQ(card.cases[1].word("op"), "sum") << "the family's default";
  EXPECT_EQ(card.cases[1].pool, 3) << "every call of a step needs a buffer of its own";
  EXPECT_EQ(card.cases[1].skew_us, 20u);
}

TEST(Card, AcceptsATrailingSlash) {
  TaskFolder folder = sample();
  EXPECT_TRUE(load_card(folder.path() + "/"));
}

struct Mistake {
  const char* file;
  const char* from;
  const char* to;
  const char* message;
};

class CardMistakes : public ::testing::TestWithParam<Mistake> {};

TEST_P(CardMistakes, AreReportedWithFileAndLine) {
  TaskFolder folder = sample();
  folder.replace(GetParam().file, GetParam().from, GetParam().to);
  EXPECT_THAT(error_of(folder), HasSubstr(std::string("sample/") + GetParam().message));
}

INSTANTIATE_TEST_SUITE_P(
    All, CardMistakes,
    ::testing::Values(
        Mistake{"task.yaml", "id: sample", "id: other", "task.yaml:1: id: \"other\" must be"},
        Mistake{"task.yaml", "id: sample", "id: Sam/ple", "task.yaml:1: id: \"Sam/ple\" is not"},
        Mistake{"task.yaml", "family: collective", "family: magic",
                "task.yaml:3: family: unknown family \"magic\""},
        Mistake{"task.yaml", "level: easy", "level: trivial",
                "task.yaml:5: level: unknown \"trivial\" (known: easy, medium, hard)"},
        Mistake{"task.yaml", "tags: [sample]", "tags: [sample]\ncolour: red",
                "task.yaml:7: colour: unknown key"},
        Mistake{"task.yaml", "all-reduce, dtype", "all-reduce, dtpye",
                "task.yaml:12: parameters.dtpye: unknown key"},
        Mistake{"task.yaml", "wall_s: 60", "wall_s: 0",
                "task.yaml:13: limits.wall_s: 0 is outside"},
        Mistake{"task.yaml", "00000000-0000-4000-8000-000000000000", "abc",
                "task.yaml:14: canary: too short"},
        Mistake{"task.yaml", "scratch: true\n", "", "task.yaml:1: missing key \"scratch\""},
        Mistake{"hidden/cases.yaml", "dtype: bf16", "dtype: fp9",
                "hidden/cases.yaml:9: cases[1].dtype: unknown \"fp9\" (known: u8, i32"},
        Mistake{"hidden/cases.yaml", "    count: [1, 0, 65]\n", "",
                "hidden/cases.yaml:2: cases[0]: missing key \"count\""},
        Mistake{"hidden/cases.yaml", "[1, 0, 65]", "[1, 0, 65, 7]",
                "hidden/cases.yaml:2: cases[0]: count: 4 values, but at least 3 calls"},
        Mistake{"hidden/cases.yaml", "[1, 0, 65]", "[]",
                "hidden/cases.yaml:4: cases[0].count: the"},
        Mistake{"hidden/cases.yaml", "min: 5, max: 9", "min: 10, max: 9",
                "hidden/cases.yaml:10: cases[1].count: min 10 is above max 9"},
        Mistake{"hidden/cases.yaml", "id: second", "id: first",
                "hidden/cases.yaml:7: cases[1]: id \"first\" is taken"},
        Mistake{"hidden/cases.yaml", "world_size: 3", "world_size: 1",
                "hidden/cases.yaml:8: cases[1].world_size: 1 is outside 2 to 64"},
        Mistake{"hidden/cases.yaml", "max: 5", "max: 2",
                "hidden/cases.yaml:5: cases[0].steps.max: 2 is outside 3 to"},
        Mistake{"hidden/cases.yaml", "measured: true", "measured: false",
                "hidden/cases.yaml:1: no case has `measured: true`"},
        Mistake{"hidden/cases.yaml", "measured: true", "output_offset: 6\n    measured: true",
                "hidden/cases.yaml:2: cases[0]: output_offset: 6 is not a multiple"},
        Mistake{"hidden/cases.yaml", "skew_us: 20", "sparse: true",
                "hidden/cases.yaml:13: cases[1].sparse: unknown key"},
        Mistake{"hidden/cases.yaml", "calls: 3", "calls: 3\n    pool: 2",
                "hidden/cases.yaml:13: cases[1].pool: 2 is outside 3 to"}));

TEST(Card, EachFileOfATaskIsRequired) {
  for (const char* name : {"prompt.md", "starter.cu", "hidden/cases.yaml"}) {
    TaskFolder folder = sample();
    std::filesystem::remove(folder.path() + "/" + name);
    EXPECT_THAT(error_of(folder), HasSubstr(std::string("sample/") + name + ": missing"));
  }
}

TEST(FindTasks, ABadCardDisablesItselfOnly) {
  TaskFolder good = sample();
  TaskFolder bad = sample();
  std::filesystem::rename(bad.path(), good.parent() + "/broken");
  std::filesystem::create_directories(good.parent() + "/include");
  std::vector<FoundTask> tasks = find_tasks({good.parent()});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_EQ(tasks[0].id, "broken");
  EXPECT_FALSE(tasks[0].card);
  EXPECT_TRUE(tasks[1].card);
}

TEST(FindTasks, OneIdTwiceIsAnErrorOfTheSecond) {
  TaskFolder one = sample();
  TaskFolder two = sample();
  std::vector<FoundTask> tasks = find_tasks({one.parent(), two.parent()});
  ASSERT_EQ(tasks.size(), 2u);
  EXPECT_TRUE(tasks[0].card);
  ASSERT_FALSE(tasks[1].card);
  EXPECT_THAT(tasks[1].card.error().message(), HasSubstr("the id is taken by " + one.path()));
}

TEST(FindTasks, AFolderThatDoesNotExistIsTheCallersMistake) {
  try {
    find_tasks({"/nonexistent/tasks"});
    FAIL() << "no error";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), ErrorCode::kUsage);
    EXPECT_THAT(e.message(), HasSubstr("/nonexistent/tasks"));
  }
}

TEST(TaskHash, ChangesWithEveryFileAndNothingElse) {
  TaskFolder folder = sample();
  std::string hash = folder.load().hash;
  EXPECT_EQ(hash, sample().load().hash) << "the place of the folder does not matter";
  std::set<std::string> seen = {hash};
  for (const char* name : {"prompt.md", "starter.cu", "hidden/notes.txt"}) {
    folder.write(name, "other text\n");
    EXPECT_TRUE(seen.insert(folder.load().hash).second) << name;
  }
}

TEST(TaskHash, RefusesLinks) {
  TaskFolder folder = sample();
  std::filesystem::create_symlink("/etc/hostname", folder.path() + "/hidden/link");
  EXPECT_THAT(error_of(folder), EndsWith("hidden/link: only regular files can be part of a task"));
}

TEST(Choice, ListsAreDealtWithoutRepetition) {
  RunKey key = testing::fixed_key();
  Choice choice = Choice::one_of({1, 2, 3, 4, 5});
  std::set<std::vector<uint64_t>> orders;
  for (uint64_t round = 0; round < 20; ++round) {
    std::vector<uint64_t> order;
    for (uint64_t i = 0; i < 5; ++i) {
      order.push_back(choice.draw(key_of(key, "a", static_cast<int>(i)), "x", 5 * round + i));
    }
    orders.insert(order);
    EXPECT_EQ(std::set<uint64_t>(order.begin(), order.end()).size(), 5u) << "round " << round;
  }
  EXPECT_GT(orders.size(), 10u) << "each round has an order of its own";
}

TEST(Choice, RangesReachBothEnds) {
  RunKey key = testing::fixed_key();
  Choice choice = Choice::range(3, 6);
  std::map<uint64_t, int> seen;
  for (uint64_t i = 0; i < 200; ++i) ++seen[choice.draw(key_of(key, "a"), "x", i)];
  EXPECT_EQ(seen.size(), 4u);
  EXPECT_EQ(seen.begin()->first, 3u);
  EXPECT_EQ(seen.rbegin()->first, 6u);
}

TEST(HiddenChoices, DependOnTheRunKeyAndTheCase) {
  Card card = sample().load();
  Case wide = card.cases[0];
  wide.max_steps = 1000;
  RunKey key = testing::fixed_key();
  RunKey other = RunKey::from_hex(std::string(64, '0'));
  int steps = step_count(wide, key_of(key, "first"));
  EXPECT_EQ(steps, step_count(wide, key_of(key, "first", 7)));
  EXPECT_GE(steps, 3);
  EXPECT_LE(steps, 1000);
  std::set<int> distinct = {steps, step_count(wide, key_of(other, "first")),
                            step_count(wide, key_of(key, "second"))};
  EXPECT_GT(distinct.size(), 1u);
}

TEST(DelayedRank, IsAnyRankWhereTheCaseHasSkewAndNoneElsewhere) {
  Card card = sample().load();
  RunKey key = testing::fixed_key();
  std::set<int> ranks;
  for (int step = 0; step < 50; ++step) {
    EXPECT_EQ(delayed_rank(card.cases[0], key_of(key, "first", step)), -1);
    ranks.insert(delayed_rank(card.cases[1], key_of(key, "second", step)));
  }
  EXPECT_EQ(ranks, (std::set<int>{0, 1, 2}));
}

}  // namespace
}  // namespace cb::tasks
