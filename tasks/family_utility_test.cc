#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

#include "tasks/card.h"
#include "tasks/testing/task_folder.h"

// See family_collective.cc.
#define cb_args cb_utility_args
#define cb_step cb_utility_step
#include <commbench/families/utility.h>

namespace cb::tasks {
namespace {

using testing::StepOfAllRanks;
using testing::TaskFolder;
using Bytes = std::vector<std::byte>;

Card chain_card() {
  return TaskFolder("utility", "primitive: barrier-chain", R"(  - id: only
    world_size: 3
    rounds: [6, 4]
    output_offset: [8, 0]
    steps: {min: 2, max: 2}
    measured: true
)",
                    "local")
      .load();
}

/// Output of every rank; `forgotten` maps a rank to one whose value it replaces by its own.
std::vector<Bytes> run_chain(const StepOfAllRanks& step, size_t rounds, int forgotten_offset = 0) {
  std::vector<uint64_t> values(3);
  for (int rank = 0; rank < 3; ++rank) {
    std::memcpy(&values[static_cast<size_t>(rank)], step.input(rank, 0).data(), 8);
  }
  std::vector<Bytes> outputs(3, Bytes(rounds * 8));
  for (size_t round = 0; round < rounds; ++round) {
    std::vector<uint64_t> next;
    for (int rank = 0; rank < 3; ++rank) {
      uint64_t v = cb_mix_begin(rank);
      for (int r = 0; r < 3; ++r) {
        bool forget = forgotten_offset != 0 && r == (rank + forgotten_offset) % 3;
        v = cb_mix_add(v, values[static_cast<size_t>(forget ? rank : r)]);
      }
      next.push_back(v);
    }
    values = next;
    for (size_t rank = 0; rank < 3; ++rank) {
      std::memcpy(outputs[rank].data() + round * 8, &values[rank], 8);
    }
  }
  return outputs;
}

TEST(BarrierChain, EveryRoundDependsOnAllRanks) {
  Card card = chain_card();
  RunKey key = testing::fixed_key();
  StepOfAllRanks step(card, card.cases[0], key, 1);
  size_t rounds = step.plans[0].outputs[0]->region().bytes / 8;
  std::vector<Bytes> right = run_chain(step, rounds);
  std::vector<Bytes> wrong = run_chain(step, rounds, 1);
  for (size_t rank = 0; rank < 3; ++rank) {
    const OutputCheck& check = *step.plans[rank].outputs[0];
    EXPECT_EQ(check.compare(0, right[rank]).wrong, 0u);
    EXPECT_EQ(check.compare(0, wrong[rank]).wrong, rounds);
  }
}

TEST(BarrierChain, RejectsEveryWrongMode) {
  Card card = chain_card();
  RunKey key = testing::fixed_key();
  StepOfAllRanks step(card, card.cases[0], key, 1);
  const OutputCheck& check = *step.plans[0].outputs[0];
  size_t rounds = check.region().bytes / 8;
  Bytes poison = step.poison_of(0, check.region());
  Bytes tail = run_chain(step, rounds)[0];
  std::copy(poison.end() - 8, poison.end(), tail.end() - 8);
  Bytes own(rounds * 8);
  Bytes input = step.input(0, 0);
  for (size_t i = 0; i < own.size(); ++i) own[i] = input[i % 8];
  std::map<std::string, Bytes> left = {{"zeros", Bytes(rounds * 8)},
                                       {"own-input", own},
                                       {"skip-tail", tail},
                                       {"nothing", poison},
                                       {"stale", poison},
                                       {"skip-rank", run_chain(step, rounds, 1)[0]}};
  for (const std::string& mode : card.family->wrong_modes(card.cases[0])) {
    ASSERT_TRUE(left.contains(mode)) << mode;
    EXPECT_GT(check.compare(0, left[mode]).wrong, 0u) << mode;
  }
  EXPECT_EQ(check.compare(0, own).first[0].note, "own input");
}

TEST(BarrierChain, BuffersAreNotAccessibleToPeers) {
  Card card = chain_card();
  for (const BufferSpec& spec : card.family->buffers(card.cases[0])) {
    EXPECT_FALSE(spec.peer_access) << spec.label;
  }
}

}  // namespace
}  // namespace cb::tasks
