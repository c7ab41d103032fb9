#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/text.h"
#include "tasks/card.h"
#include "tasks/prompt.h"
#include "tasks/testing/task_folder.h"

// What every task of the tree must fulfil.

namespace cb::tasks {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

const std::string kTasksFolder = COMMBENCH_SOURCE_DIR "/tasks";

const std::vector<FoundTask>& shipped_tasks() {
  static const std::vector<FoundTask> tasks = find_tasks({kTasksFolder});
  return tasks;
}

class ShippedTasks : public ::testing::TestWithParam<std::string> {
 protected:
  const Card& card() const {
    auto found = std::find_if(shipped_tasks().begin(), shipped_tasks().end(),
                              [](const FoundTask& task) { return task.id == GetParam(); });
    return value_of(found->card);
  }

 private:
  static const Card& value_of(const Result<Card>& card) {
    if (!card) throw card.error();
    return *card;
  }
};

TEST_P(ShippedTasks, AreTestedOnSeveralWorldSizesUnevenSizesAndBackToBack) {
  std::set<int> world_sizes;
  int most_steps = 0;
  bool back_to_back = false;
  bool nothing_to_do = false;
  bool skewed = false;
  for (const Case& test_case : card().cases) {
    world_sizes.insert(test_case.world_size);
    most_steps = std::max(most_steps, test_case.min_steps);
    back_to_back = back_to_back || test_case.calls > 1;
    skewed = skewed || test_case.skew_us > 0;
    for (const char* amount : {"count", "bytes", "rounds"}) {
      auto found = test_case.numbers.find(amount);
      if (found != test_case.numbers.end() && found->second.min() == 0) nothing_to_do = true;
    }
  }
  EXPECT_THAT(world_sizes, ::testing::IsSupersetOf({2, 3, 8}));
  EXPECT_GT(most_steps, 10) << "a candidate that is right for ten calls must be found out";
  EXPECT_TRUE(back_to_back);
  EXPECT_TRUE(nothing_to_do);
  EXPECT_TRUE(skewed);
}

TEST_P(ShippedTasks, HaveAWrongModeOnEverySmallCase) {
  size_t modes = 0;
  for (const Case& test_case : card().cases) {
    modes += card().family->wrong_modes(test_case).size();
  }
  EXPECT_GT(modes, 10u);
  EXPECT_TRUE(read_file(kTasksFolder + "/wrong/" + std::string(card().family->name()) + ".cu"));
}

TEST_P(ShippedTasks, HaveAReference) {
  EXPECT_TRUE(read_file(COMMBENCH_SOURCE_DIR "/reference/" + GetParam() + "/reference.cu"));
}

TEST_P(ShippedTasks, PlanEveryStepInsideTheirBuffers) {
  RunKey key = testing::fixed_key();
  for (const Case& test_case : card().cases) {
    std::vector<BufferSpec> specs = card().family->buffers(test_case);
    for (int step = 0; step < test_case.min_steps; ++step) {
      testing::StepOfAllRanks planned(card(), test_case, key, step);
      for (const StepPlan& plan : planned.plans) {
        ASSERT_EQ(plan.calls.size(), static_cast<size_t>(test_case.calls));
        for (const Input& input : plan.inputs) {
          ASSERT_LE(input.region.offset + input.region.bytes, specs[input.region.buffer].bytes);
        }
        for (const auto& output : plan.outputs) {
          ASSERT_LE(output->region().offset + output->region().bytes,
                    specs[output->region().buffer].bytes);
        }
      }
    }
  }
}

TEST_P(ShippedTasks, PromptsShareTheirPrefixAndShowNothingHidden) {
  std::string prompt = render_prompt(card(), kTasksFolder);
  EXPECT_THAT(prompt, StartsWith(prompt_prefix(kTasksFolder)));
  EXPECT_THAT(prompt, HasSubstr("cb_setup(cb_context* context"));
  EXPECT_THAT(prompt, HasSubstr("<commbench/families/" + std::string(card().family->name())));
  EXPECT_THAT(prompt, HasSubstr(value_or_throw(read_file(card().folder + "/prompt.md"))));
  EXPECT_THAT(prompt, HasSubstr(value_or_throw(read_file(card().folder + "/starter.cu"))));
  EXPECT_THAT(prompt, Not(HasSubstr(card().canary)));
  for (const Case& test_case : card().cases) {
    EXPECT_THAT(prompt, Not(HasSubstr("id: " + test_case.id)));
  }
}

INSTANTIATE_TEST_SUITE_P(All, ShippedTasks,
                         ::testing::Values("a2a-direct", "ag-fullmesh", "ar-oneshot-pull",
                                           "ar-twoshot", "barrier-matrix", "p2p-ipc",
                                           "p2p-put-signal", "p2p-sm-push"),
                         [](const auto& info) {
                           std::string name = info.param;
                           std::replace(name.begin(), name.end(), '-', '_');
                           return name;
                         });

TEST(ShippedTaskFolder, EveryCardLoadsAndEveryTaskIsTestedHere) {
  EXPECT_EQ(shipped_tasks().size(), 8u);
  std::set<std::string> canaries;
  for (const FoundTask& task : shipped_tasks()) {
    ASSERT_TRUE(task.card) << task.card.error().message();
    EXPECT_TRUE(canaries.insert(task.card->canary).second) << "two tasks share a canary";
  }
}

}  // namespace
}  // namespace cb::tasks
