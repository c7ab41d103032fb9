#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tasks/card.h"
#include "tasks/testing/task_folder.h"

// See family_collective.cc.
#define cb_args cb_p2p_args
#define cb_step cb_p2p_step
#include <commbench/families/p2p.h>

namespace cb::tasks {
namespace {

using testing::StepOfAllRanks;
using testing::TaskFolder;
using Bytes = std::vector<std::byte>;

Card card_of(int world_size, bool consumer, const std::string& buffers = "symmetric") {
  return TaskFolder("p2p", fmt::format("consumer: {}", consumer),
                    fmt::format(R"(  - id: only
    world_size: {}
    bytes: [0, 5, 1000]
    source_offset: [3]
    target_offset: [0, 1, 2]
    steps: {{min: 3, max: 3}}
    measured: true
)",
                                world_size),
                    buffers)
      .load();
}

/// A step that moves something.
StepOfAllRanks busy_step(const Card& card, const RunKey& key) {
  for (int s = 2;; --s) {
    StepOfAllRanks step(card, card.cases[0], key, s);
    if (step.plans[0].inputs[0].region.bytes >= 5) return step;
  }
}

const cb_step& step_struct(const StepPlan& plan) {
  return *reinterpret_cast<const cb_step*>(plan.calls[0].bytes.data());
}

TEST(P2p, EachReceiverGetsItsPartnersDataAndTheLastOfAnOddWorldNothing) {
  RunKey key = testing::fixed_key();
  Card card = card_of(5, false);
  StepOfAllRanks step = busy_step(card, key);
  for (size_t sender : {0u, 2u}) {
    EXPECT_TRUE(step.plans[sender].outputs.empty());
    ASSERT_EQ(step.plans[sender + 1].outputs.size(), 1u);
    Bytes sent = step.input(static_cast<int>(sender), 0);
    EXPECT_EQ(step.plans[sender + 1].outputs[0]->compare(0, sent).wrong, 0u);
    EXPECT_TRUE(step.plans[sender + 1].inputs.empty());
  }
  EXPECT_NE(step.input(0, 0), step.input(2, 0));
  EXPECT_TRUE(step.plans[4].outputs.empty());
  EXPECT_TRUE(step.plans[4].inputs.empty());
}

TEST(P2p, AConsumerMustHaveTargetAndOutput) {
  RunKey key = testing::fixed_key();
  Card card = card_of(2, true);
  StepOfAllRanks step = busy_step(card, key);
  ASSERT_EQ(step.plans[1].outputs.size(), 2u);
  EXPECT_EQ(step.plans[1].outputs[0]->label(), "target");
  EXPECT_EQ(step.plans[1].outputs[1]->label(), "output");
  std::vector<BufferSpec> specs = card.family->buffers(card.cases[0]);
  EXPECT_TRUE(specs.at(step.plans[1].outputs[0]->region().buffer).peer_access);
  EXPECT_FALSE(specs.at(step.plans[1].outputs[1]->region().buffer).peer_access);
}

TEST(P2p, RolesAndSequenceReachTheCandidate) {
  RunKey key = testing::fixed_key();
  Card card = card_of(3, false);
  for (int rank = 0; rank < 3; ++rank) {
    Blob blob = card.family->args(card.cases[0], rank);
    const auto& args = *reinterpret_cast<const cb_args*>(blob.bytes.data());
    const cb_p2p_role roles[] = {CB_P2P_SENDER, CB_P2P_RECEIVER, CB_P2P_IDLE};
    const int partners[] = {1, 0, -1};
    EXPECT_EQ(args.role, roles[rank]);
    EXPECT_EQ(args.partner, partners[rank]);
    EXPECT_EQ(args.max_bytes, 1000u);
    EXPECT_EQ(args.num_buffers, 4u);
  }
  for (int s = 0; s < 3; ++s) {
    StepOfAllRanks step(card, card.cases[0], key, s);
    EXPECT_EQ(step_struct(step.plans[0]).sequence, static_cast<uint64_t>(s) + 1);
  }
}

TEST(P2p, LocalBuffersHaveNoPeerAddresses) {
  RunKey key = testing::fixed_key();
  Card card = card_of(2, false, "local");
  StepOfAllRanks step = busy_step(card, key);
  for (const Blob::Patch& patch : step.plans[0].calls[0].patches) {
    EXPECT_NE(patch.at, offsetof(cb_step, target) + offsetof(cb_span, peer));
    EXPECT_EQ(patch.rank, 0);
  }
}

TEST(P2p, RejectsEveryWrongMode) {
  RunKey key = testing::fixed_key();
  Card card = card_of(2, false);
  StepOfAllRanks step = busy_step(card, key);
  const OutputCheck& check = *step.plans[1].outputs[0];
  Bytes poison = step.poison_of(1, check.region());
  Bytes tail = step.input(0, 0);
  tail.back() = poison.back();
  // The receiver's own source buffer holds poison as well.
  Bytes own = step.poison_of(1, step.plans[0].inputs[0].region);
  std::map<std::string, Bytes> left = {{"zeros", Bytes(tail.size())},
                                       {"own-input", own},
                                       {"skip-tail", tail},
                                       {"nothing", poison},
                                       {"stale", poison}};
  for (const std::string& mode : card.family->wrong_modes(card.cases[0])) {
    ASSERT_TRUE(left.contains(mode)) << mode;
    EXPECT_GT(check.compare(0, left[mode]).wrong, 0u) << mode;
  }
  EXPECT_EQ(check.compare(0, poison).first[0].note, "poison: not written");
}

TEST(P2p, AnOutputOffsetWithoutConsumerIsAMistake) {
  TaskFolder folder("p2p", "", R"(  - id: only
    world_size: 2
    bytes: 8
    output_offset: 4
    steps: {min: 1, max: 1}
    measured: true
)");
  Result<Card> card = load_card(folder.path());
  ASSERT_FALSE(card);
  EXPECT_THAT(card.error().message(),
              ::testing::HasSubstr("cases.yaml:2: cases[0]: output_offset"));
}

}  // namespace
}  // namespace cb::tasks
