#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "tasks/card.h"
#include "tasks/numbers.h"
#include "tasks/poison.h"
#include "tasks/testing/task_folder.h"

// See family_collective.cc.
#define cb_args cb_collective_args
#define cb_step cb_collective_step
#include <commbench/families/collective.h>

namespace cb::tasks {
namespace {

using testing::StepOfAllRanks;
using testing::TaskFolder;
using Bytes = std::vector<std::byte>;

struct Setting {
  std::string collective;
  std::string dtype;
  std::string op = "sum";
  int world_size = 3;
  bool in_place = false;
  int calls = 1;
};

std::string name_of(const ::testing::TestParamInfo<Setting>& info) {
  const Setting& s = info.param;
  std::string name = fmt::format("{}_{}_{}_{}{}", s.collective, s.dtype, s.op, s.world_size,
                                 s.in_place ? "_in_place" : "");
  for (char& c : name) c = c == '-' ? '_' : c;
  return name;
}

Card card_of(const Setting& setting) {
  return TaskFolder("collective", "",
                    fmt::format(R"(  - id: only
    collective: {}
    dtype: {}
    op: {}
    world_size: {}
    in_place: {}
    calls: {}
    count: [33, 1, 100]
    output_offset: [0, 8]
    steps: {{min: 3, max: 3}}
    measured: true
)",
                                setting.collective, setting.dtype, setting.op, setting.world_size,
                                setting.in_place, setting.calls))
      .load();
}

/// The value of `bits`, exactly; long double holds the 64-bit integers and products of the tests.
long double value_of(Dtype dtype, uint64_t bits) {
  if (dtype == Dtype::kI64) return static_cast<int64_t>(bits);
  if (dtype == Dtype::kI32) return static_cast<int32_t>(bits);
  if (dtype == Dtype::kU8) return bits;
  return decode_float(dtype, bits);
}

/// A straightforward reduction of one element, apart from how the family computes it.
uint64_t reduce(Dtype dtype, const std::string& op, const std::vector<uint64_t>& terms) {
  if (op == "min" || op == "max") {
    uint64_t best = terms[0];
    for (uint64_t term : terms) {
      bool better = op == "min" ? value_of(dtype, term) < value_of(dtype, best)
                                : value_of(dtype, term) > value_of(dtype, best);
      if (better) best = term;
    }
    return best;
  }
  if (!is_float(dtype)) {
    uint64_t result = terms[0];
    for (size_t i = 1; i < terms.size(); ++i) {
      result = op == "sum" ? result + terms[i] : result * terms[i];
    }
    return result;
  }
  long double result = value_of(dtype, terms[0]);
  for (size_t i = 1; i < terms.size(); ++i) {
    long double term = value_of(dtype, terms[i]);
    result = op == "sum" ? result + term : result * term;
  }
  return encode_float(dtype, static_cast<double>(result));
}

/// Outputs of one call on all ranks, computed from the inputs by the definition in the header.
std::vector<Bytes> outputs_by_definition(const Setting& setting, const StepOfAllRanks& step,
                                         int call, int root, int skipped_rank = -1) {
  Dtype dtype = dtype_from_name(setting.dtype);
  size_t size = element_bytes(dtype);
  int ranks = setting.world_size;
  std::vector<Bytes> inputs(static_cast<size_t>(ranks));
  for (int rank = 0; rank < ranks; ++rank) {
    inputs[static_cast<size_t>(rank)] = step.input(rank, call);
  }
  bool blocks = setting.collective == "reduce-scatter" || setting.collective == "all-to-all";
  size_t block = inputs[0].size() / (blocks ? static_cast<size_t>(ranks) : 1);
  std::vector<Bytes> outputs;
  for (int rank = 0; rank < ranks; ++rank) {
    size_t own = static_cast<size_t>(rank) * block;
    Bytes output;
    auto append = [&](const Bytes& from, size_t at) {
      output.insert(output.end(), from.begin() + static_cast<ptrdiff_t>(at),
                    from.begin() + static_cast<ptrdiff_t>(at + block));
    };
    if (setting.collective == "broadcast") append(inputs[static_cast<size_t>(root)], 0);
    for (int source = 0; source < ranks; ++source) {
      if (setting.collective == "all-gather") append(inputs[static_cast<size_t>(source)], 0);
      if (setting.collective == "all-to-all") append(inputs[static_cast<size_t>(source)], own);
    }
    if (setting.collective == "all-reduce" || setting.collective == "reduce-scatter") {
      size_t start = blocks ? own : 0;
      output.resize(block);
      for (size_t at = 0; at < block; at += size) {
        std::vector<uint64_t> terms;
        for (int source = 0; source < ranks; ++source) {
          if (source == skipped_rank) continue;
          terms.push_back(
              load_bits(dtype, inputs[static_cast<size_t>(source)].data() + start + at));
        }
        store_bits(dtype, reduce(dtype, setting.op, terms), output.data() + at);
      }
    }
    outputs.push_back(std::move(output));
  }
  return outputs;
}

const cb_step& step_struct(const Blob& blob) {
  return *reinterpret_cast<const cb_step*>(blob.bytes.data());
}

uint64_t count_wrong(const StepOfAllRanks& step, int call, const std::vector<Bytes>& outputs) {
  uint64_t wrong = 0;
  for (size_t rank = 0; rank < outputs.size(); ++rank) {
    const OutputCheck& check = *step.plans[rank].outputs[static_cast<size_t>(call)];
    EXPECT_EQ(check.region().bytes, outputs[rank].size());
    wrong += check.compare(0, outputs[rank]).wrong;
  }
  return wrong;
}

class Collectives : public ::testing::TestWithParam<Setting> {
 protected:
  Card card = card_of(GetParam());
  RunKey key = testing::fixed_key();
};

TEST_P(Collectives, AcceptTheOutputsOfTheDefinition) {
  for (int s = 0; s < 3; ++s) {
    StepOfAllRanks step(card, card.cases[0], key, s);
    for (int call = 0; call < GetParam().calls; ++call) {
      int root = step_struct(step.plans[0].calls[static_cast<size_t>(call)]).root;
      EXPECT_EQ(count_wrong(step, call, outputs_by_definition(GetParam(), step, call, root)), 0u);
    }
  }
}

/// What the wrong candidate of this mode leaves in rank `rank`'s output.
Bytes wrong_output(const std::string& mode, const Setting& setting, const StepOfAllRanks& step,
                   int rank, int root) {
  auto own = static_cast<size_t>(rank);
  const Region& region = step.plans[own].outputs[0]->region();
  Bytes right = outputs_by_definition(setting, step, 0, root)[own];
  Bytes poison = step.poison_of(rank, region);
  Bytes input = step.input(rank, 0);
  size_t size = element_bytes(dtype_from_name(setting.dtype));
  auto ranks = static_cast<size_t>(setting.world_size);
  if (mode == "zeros") return Bytes(right.size());
  if (mode == "nothing" || mode == "stale") return poison;
  if (mode == "skip-tail") {
    std::copy(poison.end() - static_cast<ptrdiff_t>(size), poison.end(),
              right.end() - static_cast<ptrdiff_t>(size));
    return right;
  }
  bool gathers = setting.collective == "all-gather";
  size_t block = right.size() / (gathers || setting.collective == "all-to-all" ? ranks : 1);
  if (mode == "own-input") {
    Bytes output(right.size());
    size_t start = setting.collective == "reduce-scatter" ? own * block : 0;
    for (size_t i = 0; i < output.size(); ++i) output[i] = input[start + i % input.size()];
    return output;
  }
  if (mode == "skip-rank") {
    int skipped = (rank + 1) % setting.world_size;
    if (gathers || setting.collective == "all-to-all") {
      size_t at = static_cast<size_t>(skipped) * block;
      std::copy_n(poison.begin() + static_cast<ptrdiff_t>(at), block,
                  right.begin() + static_cast<ptrdiff_t>(at));
      return right;
    }
    return outputs_by_definition(setting, step, 0, root, skipped)[own];
  }
  EXPECT_EQ(mode, "own-shard");
  // The shard that a two-shot reduction or an exchange without communication leaves.
  size_t elements = right.size() / size;
  size_t begin =
      gathers || setting.collective == "all-to-all" ? own * block : elements * own / ranks * size;
  size_t end = gathers || setting.collective == "all-to-all" ? begin + block
                                                             : elements * (own + 1) / ranks * size;
  std::copy(right.begin() + static_cast<ptrdiff_t>(begin),
            right.begin() + static_cast<ptrdiff_t>(end),
            poison.begin() + static_cast<ptrdiff_t>(begin));
  return poison;
}

TEST_P(Collectives, RejectEveryWrongMode) {
  std::vector<std::string> modes = card.family->wrong_modes(card.cases[0]);
  EXPECT_THAT(modes, ::testing::IsSupersetOf({"zeros", "own-input", "stale", "nothing"}));
  for (const std::string& mode : modes) {
    uint64_t wrong = 0;
    for (int s : {1, 2}) {
      StepOfAllRanks step(card, card.cases[0], key, s);
      int root = step_struct(step.plans[0].calls[0]).root;
      std::vector<Bytes> outputs(static_cast<size_t>(GetParam().world_size));
      for (int rank = 0; rank < GetParam().world_size; ++rank) {
        outputs[static_cast<size_t>(rank)] = wrong_output(mode, GetParam(), step, rank, root);
      }
      wrong += count_wrong(step, 0, outputs);
    }
    EXPECT_GT(wrong, 0u) << mode;
  }
}

TEST(Collective, WrongModesThatMayPassByChanceAreNotNamed) {
  TaskFolder folder("collective", "collective: all-reduce, dtype: u8, op: max", R"(  - id: only
    world_size: 2
    count: [0, 1]
    steps: {min: 2, max: 2}
    measured: true
)");
  Card card = folder.load();
  EXPECT_THAT(card.family->wrong_modes(card.cases[0]),
              ::testing::UnorderedElementsAre("zeros", "skip-tail", "nothing"));
}

std::vector<Setting> settings() {
  std::vector<Setting> all;
  for (const char* collective : {"all-gather", "all-to-all", "broadcast"}) {
    for (const char* dtype : {"u8", "bf16", "f32", "i64"}) {
      for (int ranks : {2, 3, 8}) all.push_back({collective, dtype, "sum", ranks, false, 1});
    }
  }
  for (const char* collective : {"all-reduce", "reduce-scatter"}) {
    for (const std::string& dtype : dtype_names()) {
      for (const char* op : {"sum", "prod", "min", "max"}) {
        all.push_back({collective, dtype, op, 3, false, 1});
      }
      all.push_back({collective, dtype, "sum", 8, false, 1});
      all.push_back({collective, dtype, "sum", 2, true, 2});
    }
  }
  all.push_back({"all-gather", "f16", "sum", 3, true, 2});
  all.push_back({"broadcast", "f16", "sum", 3, true, 1});
  return all;
}
INSTANTIATE_TEST_SUITE_P(All, Collectives, ::testing::ValuesIn(settings()), name_of);

TEST(Collective, FindingsNameWhatTheyRecognise) {
  Setting setting{"all-gather", "bf16", "sum", 3, false, 1};
  Card card = card_of(setting);
  RunKey key = testing::fixed_key();
  StepOfAllRanks step(card, card.cases[0], key, 0);
  const OutputCheck& check = *step.plans[1].outputs[0];
  Bytes output = outputs_by_definition(setting, step, 0, 0)[1];
  size_t block = output.size() / 3;
  Bytes own = step.input(1, 0);
  std::copy(own.begin(), own.end(), output.begin());
  Comparison comparison = check.compare(0, output);
  ASSERT_EQ(comparison.wrong, block / 2);
  EXPECT_EQ(comparison.first[0].element, 0u);
  EXPECT_EQ(comparison.first[0].note, "own input");
  EXPECT_LE(comparison.first.size(), 8u);

  comparison = check.compare(0, step.poison_of(1, check.region()));
  EXPECT_EQ(comparison.first[0].note, "poison: not written");
  comparison = check.compare(0, Bytes(output.size()));
  EXPECT_EQ(comparison.first[0].note, "zero");
  Bytes two = step.input(2, 0);
  Bytes mixed = outputs_by_definition(setting, step, 0, 0)[1];
  std::copy(two.begin(), two.end(), mixed.begin());
  EXPECT_EQ(check.compare(0, mixed).first[0].note, "rank 2's input");
}

TEST(Collective, FindingsNameAForgottenRankAndTheStepBefore) {
  Setting setting{"all-reduce", "f32", "sum", 3, false, 1};
  Card card = card_of(setting);
  RunKey key = testing::fixed_key();
  StepOfAllRanks before(card, card.cases[0], key, 0);
  StepOfAllRanks step(card, card.cases[0], key, 1);
  const OutputCheck& check = *step.plans[0].outputs[0];
  Bytes partial = outputs_by_definition(setting, step, 0, 0, 2)[0];
  EXPECT_EQ(check.compare(0, partial).first[0].note, "rank 2 left out");
  Bytes stale = outputs_by_definition(setting, before, 0, 0)[0];
  stale.resize(std::min<size_t>(stale.size(), check.region().bytes));
  EXPECT_EQ(check.compare(0, stale).first[0].note, "previous step's result");
}

TEST(Collective, PiecesOfAnOutputCompareLikeTheWhole) {
  Setting setting{"all-to-all", "u8", "sum", 3, false, 1};
  Card card = card_of(setting);
  RunKey key = testing::fixed_key();
  StepOfAllRanks step(card, card.cases[0], key, 0);
  const OutputCheck& check = *step.plans[2].outputs[0];
  Bytes output = outputs_by_definition(setting, step, 0, 0)[2];
  output[output.size() - 1] ^= std::byte{1};
  Comparison merged;
  for (size_t at = 0; at < output.size(); at += 7) {
    merged.merge(
        check.compare(at, std::span(output).subspan(at, std::min<size_t>(7, output.size() - at))));
  }
  EXPECT_EQ(merged.elements, output.size());
  EXPECT_EQ(merged.wrong, 1u);
  EXPECT_EQ(merged.first.at(0).element, output.size() - 1);
}

TEST(Collective, StructsPointIntoTheBuffersTheyName) {
  Setting setting{"all-gather", "f32", "sum", 3, true, 2};
  Card card = card_of(setting);
  RunKey key = testing::fixed_key();
  StepOfAllRanks step(card, card.cases[0], key, 0);
  std::set<uint32_t> outputs;
  for (const Blob& blob : step.plans[2].calls) {
    const cb_step& fields = step_struct(blob);
    outputs.insert(fields.output_buffer);
    EXPECT_EQ(fields.in_place, 1);
    EXPECT_EQ(fields.input_buffer, fields.output_buffer);
    EXPECT_EQ(fields.input_offset, fields.output_offset + 2 * fields.count * 4);
    EXPECT_EQ(fields.input.bytes, fields.count * 4);
    EXPECT_EQ(fields.output.bytes, fields.count * 12);
    int own_input = 0;
    int peer_inputs = 0;
    for (const Blob::Patch& patch : blob.patches) {
      if (patch.target != Blob::Target::kBuffer || patch.buffer != fields.input_buffer) continue;
      uint64_t shift = static_cast<uint64_t>(patch.rank) * fields.count * 4;
      if (patch.at == offsetof(cb_step, input) + offsetof(cb_span, local)) {
        EXPECT_EQ(patch.rank, 2);
        EXPECT_EQ(patch.offset, fields.input_offset);
        ++own_input;
      } else if (patch.at >= sizeof(cb_step) && patch.offset == fields.output_offset + shift) {
        ++peer_inputs;
      }
    }
    EXPECT_EQ(own_input, 1);
    // Rank 0's input is also where its output lies.
    EXPECT_EQ(peer_inputs, 3 + 1);
  }
  EXPECT_EQ(outputs.size(), 2u) << "calls of one step have buffers of their own";
}

TEST(Collective, RegionsKeepTheirDistanceFromTheEndsOfBuffers) {
  for (const Setting& setting : settings()) {
    Card card = card_of(setting);
    RunKey key = testing::fixed_key();
    std::vector<BufferSpec> specs = card.family->buffers(card.cases[0]);
    for (int s = 0; s < 3; ++s) {
      StepOfAllRanks step(card, card.cases[0], key, s);
      auto inside = [&](const Region& region) {
        return region.offset >= kGuardBytes &&
               region.offset + region.bytes + kGuardBytes <= specs.at(region.buffer).bytes;
      };
      for (const StepPlan& plan : step.plans) {
        for (const Input& input : plan.inputs) EXPECT_TRUE(inside(input.region));
        for (const auto& output : plan.outputs) EXPECT_TRUE(inside(output->region()));
      }
    }
  }
}

TEST(Collective, StepsAreDeterministicAndDiffer) {
  Setting setting{"all-gather", "u8", "sum", 3, false, 1};
  Card card = card_of(setting);
  RunKey key = testing::fixed_key();
  RunKey other = RunKey::from_hex(std::string(64, '1'));
  StepOfAllRanks a(card, card.cases[0], key, 1);
  StepOfAllRanks b(card, card.cases[0], key, 1);
  EXPECT_EQ(a.plans[0].calls[0].bytes, b.plans[0].calls[0].bytes);
  EXPECT_EQ(a.input(0, 0), b.input(0, 0));
  Bytes prefix(1);
  std::set<Bytes> inputs;
  for (int s = 0; s < 3; ++s) {
    for (const RunKey* k : {&key, &other}) {
      StepOfAllRanks step(card, card.cases[0], *k, s);
      for (int rank = 0; rank < 3; ++rank) {
        Bytes first(64);
        step.plans[static_cast<size_t>(rank)].inputs[0].content->produce(0, first);
        EXPECT_TRUE(inputs.insert(first).second);
      }
    }
  }
}

TEST(Collective, TrafficFollowsNcclTests) {
  auto traffic = [](const std::string& collective) {
    Card card = card_of({collective, "f32", "sum", 8, false, 1});
    RunKey key = testing::fixed_key();
    StepOfAllRanks step(card, card.cases[0], key, 0);
    Traffic t = card.family->traffic(card.cases[0], step.key);
    uint64_t count = step_struct(step.plans[0].calls[0]).count;
    EXPECT_EQ(t.count, count);
    return std::pair(static_cast<double>(t.bytes) / static_cast<double>(count), t.bus_factor);
  };
  EXPECT_EQ(traffic("all-reduce"), std::pair(4.0, 1.75));
  EXPECT_EQ(traffic("all-gather"), std::pair(32.0, 0.875));
  EXPECT_EQ(traffic("reduce-scatter"), std::pair(32.0, 0.875));
  EXPECT_EQ(traffic("all-to-all"), std::pair(32.0, 0.875));
  EXPECT_EQ(traffic("broadcast"), std::pair(4.0, 1.0));
}

TEST(Collective, AllToAllInPlaceIsRefused) {
  EXPECT_THROW(card_of({"all-to-all", "f32", "sum", 3, true, 1}), Error);
  EXPECT_THROW(card_of({"all-gather", "f32", "max", 3, false, 1}), Error);
}

}  // namespace
}  // namespace cb::tasks
