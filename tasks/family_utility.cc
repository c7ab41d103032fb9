#include <fmt/format.h>

#include <cstring>
#include <span>

#include "tasks/blob_builder.h"
#include "tasks/card.h"
#include "tasks/content.h"
#include "tasks/content_check.h"
#include "tasks/families.h"
#include "tasks/pool.h"

// See family_collective.cc.
#define cb_args cb_utility_args
#define cb_step cb_utility_step
#include <commbench/families/utility.h>

// The one primitive, `barrier-chain`: `rounds` exchanges in which every rank's next value depends
// on all ranks' values before, so that a barrier that lets anyone run ahead changes the outcome.

namespace cb::tasks {
namespace {

constexpr uint64_t kMaxRounds = 1'000'000;
constexpr uint64_t kValueBytes = sizeof(uint64_t);

struct Call {
  uint64_t rounds = 0;
  uint32_t input_buffer = 0;
  uint32_t output_buffer = 0;
  uint64_t input_offset = 0;
  uint64_t output_offset = 0;
};

std::vector<Call> draw_calls(const Case& test_case, const StepKey& key) {
  auto pool = static_cast<uint32_t>(test_case.pool);
  std::vector<uint32_t> inputs = shuffled_buffers(key, "input buffers", 0, pool);
  std::vector<uint32_t> outputs = shuffled_buffers(key, "output buffers", pool, pool);
  std::vector<Call> calls;
  for (int c = 0; c < test_case.calls; ++c) {
    uint64_t index = draw_index(test_case, key, c);
    auto place = static_cast<size_t>(c);
    calls.push_back(
        {test_case.number("rounds").draw(key, "rounds", index), inputs[place], outputs[place],
         kGuardBytes + test_case.number("input_offset").draw(key, "input at", index),
         kGuardBytes + test_case.number("output_offset").draw(key, "output at", index)});
  }
  return calls;
}

std::shared_ptr<const Content> start_value(const StepKey& key, int call, int rank) {
  return std::make_shared<RandomContent>(
      key.seed(fmt::format("value of call {} rank {}", call, rank)));
}

/// What `rank` writes in the rounds of one call.
std::shared_ptr<const Content> chain(const Case& test_case, const StepKey& key, int call,
                                     uint64_t rounds, int rank) {
  auto ranks = static_cast<size_t>(test_case.world_size);
  std::vector<uint64_t> values(ranks);
  for (size_t r = 0; r < ranks; ++r) {
    start_value(key, call, static_cast<int>(r))
        ->produce(0, std::as_writable_bytes(std::span(&values[r], 1)));
  }
  std::vector<uint64_t> next(ranks);
  std::vector<std::byte> written(rounds * kValueBytes);
  for (uint64_t round = 0; round < rounds; ++round) {
    for (size_t r = 0; r < ranks; ++r) {
      next[r] = cb_mix_begin(static_cast<int>(r));
      for (uint64_t value : values) next[r] = cb_mix_add(next[r], value);
    }
    values = next;
    std::memcpy(written.data() + round * kValueBytes, &values[static_cast<size_t>(rank)],
                kValueBytes);
  }
  return std::make_shared<StoredContent>(std::move(written));
}

class UtilityFamily final : public Family {
 public:
  std::string_view name() const override { return "utility"; }

  std::vector<Parameter> parameters() const override {
    using Kind = Parameter::Kind;
    return {{"primitive", Kind::kWord, {"barrier-chain"}, {}},
            {"rounds", Kind::kNumbers, {}, {}},
            {"input_offset", Kind::kNumbers, {}, "0"},
            {"output_offset", Kind::kNumbers, {}, "0"}};
  }

  void validate(const Case& test_case) const override {
    if (test_case.number("rounds").max() > kMaxRounds) {
      throw Error(ErrorCode::kConfig, fmt::format("rounds: {} is more than {}",
                                                  test_case.number("rounds").max(), kMaxRounds));
    }
    require_aligned(test_case, {"input_offset", "output_offset"}, kValueBytes);
  }

  std::vector<BufferSpec> buffers(const Case& test_case) const override {
    std::vector<BufferSpec> specs;
    add_buffers(test_case, "input", test_case.number("input_offset").max() + kValueBytes, specs);
    add_buffers(
        test_case, "output",
        test_case.number("output_offset").max() + test_case.number("rounds").max() * kValueBytes,
        specs);
    return specs;
  }

  Blob args(const Case& test_case, int rank) const override {
    std::vector<BufferSpec> specs = buffers(test_case);
    BlobBuilder builder(rank, sizeof(cb_args));
    cb_args fields = {};
    fields.max_rounds = test_case.number("rounds").max();
    fields.num_buffers = static_cast<uint32_t>(specs.size());
    builder.put(0, fields);
    put_buffers(test_case, specs, offsetof(cb_args, buffers), builder);
    return builder.take();
  }

  StepPlan plan(const Case& test_case, const StepKey& key, int rank) const override {
    std::vector<BufferSpec> specs = buffers(test_case);
    std::vector<Call> calls = draw_calls(test_case, key);
    std::vector<Call> before;
    if (key.step > 0) before = draw_calls(test_case, previous(key));
    StepPlan plan;
    for (size_t c = 0; c < calls.size(); ++c) {
      const Call& call = calls[c];
      auto number = static_cast<int>(c);
      plan.calls.push_back(step_blob(test_case, specs, call, rank));
      plan.inputs.push_back(
          {{call.input_buffer, call.input_offset, kValueBytes}, start_value(key, number, rank)});
      Region region = {call.output_buffer, call.output_offset, call.rounds * kValueBytes};
      std::vector<Suspect> suspects = common_suspects(key, rank, region);
      suspects.push_back({"own input", start_value(key, number, rank), kValueBytes});
      if (!before.empty()) {
        uint64_t rounds = before[c].rounds;
        suspects.push_back({"previous step's result",
                            chain(test_case, previous(key), number, rounds, rank),
                            rounds * kValueBytes});
      }
      plan.outputs.push_back(std::make_unique<ContentCheck>(
          call_label("output", test_case, number), region, Dtype::kI64,
          chain(test_case, key, number, call.rounds, rank), std::move(suspects)));
    }
    return plan;
  }

  Traffic traffic(const Case& test_case, const StepKey& key) const override {
    Traffic traffic;
    for (const Call& call : draw_calls(test_case, key)) {
      traffic.count += call.rounds;
      traffic.bytes += call.rounds * kValueBytes;
    }
    return traffic;
  }

  std::vector<std::string> wrong_modes(const Case& test_case) const override {
    WorkSteps work =
        work_steps(test_case, "rounds", test_case.number("rounds").max() * kValueBytes);
    if (!work.some) return {};
    std::vector<std::string> modes = {"zeros", "own-input", "skip-rank", "skip-tail", "nothing"};
    if (work.after_first_step) modes.emplace_back("stale");
    return modes;
  }

 private:
  static Blob step_blob(const Case& test_case, const std::vector<BufferSpec>& specs,
                        const Call& call, int rank) {
    auto same = [&](uint64_t offset) {
      return std::vector<uint64_t>(static_cast<size_t>(test_case.world_size), offset);
    };
    BlobBuilder builder(rank, sizeof(cb_step));
    cb_step fields = {};
    fields.rounds = call.rounds;
    builder.put(0, fields);
    builder.put_span(offsetof(cb_step, input), {&specs[call.input_buffer], call.input_buffer,
                                                same(call.input_offset), kValueBytes});
    builder.put_span(offsetof(cb_step, output),
                     {&specs[call.output_buffer], call.output_buffer, same(call.output_offset),
                      call.rounds * kValueBytes});
    return builder.take();
  }
};

}  // namespace

const Family* utility_family() {
  static const UtilityFamily family;
  return &family;
}

}  // namespace cb::tasks
