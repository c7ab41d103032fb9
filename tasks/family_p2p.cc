#include <fmt/format.h>

#include "tasks/blob_builder.h"
#include "tasks/card.h"
#include "tasks/content.h"
#include "tasks/content_check.h"
#include "tasks/families.h"
#include "tasks/pool.h"

// Ranks 2p and 2p + 1 are a pair; every pair moves the same number of bytes between the same
// buffers and offsets, with data of its own. With a consumer, the receiver must hold the data
// twice: where the sender puts it, and where it copies it after the signal.

// See family_collective.cc.
#define cb_args cb_p2p_args
#define cb_step cb_p2p_step
#include <commbench/families/p2p.h>

namespace cb::tasks {
namespace {

constexpr uint64_t kMaxTransferBytes = uint64_t{1} << 32;

cb_p2p_role role_of(const Case& test_case, int rank) {
  if (rank % 2 == 1) return CB_P2P_RECEIVER;
  return rank + 1 < test_case.world_size ? CB_P2P_SENDER : CB_P2P_IDLE;
}

int partner_of(const Case& test_case, int rank) {
  return role_of(test_case, rank) == CB_P2P_IDLE ? -1 : rank ^ 1;
}

/// One cb_run: the same on every rank; only the data differs from pair to pair.
struct Call {
  uint64_t bytes = 0;
  uint64_t sequence = 0;
  uint32_t source_buffer = 0;
  uint32_t target_buffer = 0;
  uint32_t output_buffer = 0;
  uint64_t source_offset = 0;
  uint64_t target_offset = 0;
  uint64_t output_offset = 0;
};

std::vector<Call> draw_calls(const Case& test_case, const StepKey& key) {
  auto pool = static_cast<uint32_t>(test_case.pool);
  std::vector<uint32_t> sources = shuffled_buffers(key, "source buffers", 0, pool);
  std::vector<uint32_t> targets = shuffled_buffers(key, "target buffers", pool, pool);
  std::vector<uint32_t> outputs = shuffled_buffers(key, "output buffers", 2 * pool, pool);
  std::vector<Call> calls;
  for (int c = 0; c < test_case.calls; ++c) {
    uint64_t index = draw_index(test_case, key, c);
    auto place = static_cast<size_t>(c);
    Call call;
    call.bytes = test_case.number("bytes").draw(key, "bytes", index);
    call.sequence = index + 1;
    call.source_buffer = sources[place];
    call.target_buffer = targets[place];
    call.output_buffer = outputs[place];
    call.source_offset =
        kGuardBytes + test_case.number("source_offset").draw(key, "source at", index);
    call.target_offset =
        kGuardBytes + test_case.number("target_offset").draw(key, "target at", index);
    call.output_offset =
        kGuardBytes + test_case.number("output_offset").draw(key, "output at", index);
    calls.push_back(call);
  }
  return calls;
}

std::shared_ptr<const Content> sent_data(const StepKey& key, int call, int sender) {
  return std::make_shared<RandomContent>(
      key.seed(fmt::format("data of call {} rank {}", call, sender)));
}

class P2pFamily final : public Family {
 public:
  std::string_view name() const override { return "p2p"; }

  std::vector<Parameter> parameters() const override {
    using Kind = Parameter::Kind;
    return {{"bytes", Kind::kNumbers, {}, {}},          {"source_offset", Kind::kNumbers, {}, "0"},
            {"target_offset", Kind::kNumbers, {}, "0"}, {"output_offset", Kind::kNumbers, {}, "0"},
            {"consumer", Kind::kFlag, {}, "false"},     {"sparse", Kind::kFlag, {}, "false"}};
  }

  void validate(const Case& test_case) const override {
    uint64_t largest = test_case.number("bytes").max();
    if (largest > kMaxTransferBytes) {
      throw Error(ErrorCode::kConfig, fmt::format("bytes: {} is more than 4 GiB", largest));
    }
    if (!test_case.flag("consumer") && test_case.number("output_offset").max() != 0) {
      throw Error(ErrorCode::kConfig, "output_offset: without `consumer: true` there is no output");
    }
  }

  std::vector<BufferSpec> buffers(const Case& test_case) const override {
    uint64_t largest = test_case.number("bytes").max();
    std::vector<BufferSpec> specs;
    add_buffers(test_case, "source", test_case.number("source_offset").max() + largest, specs);
    add_buffers(test_case, "target", test_case.number("target_offset").max() + largest, specs);
    for (BufferSpec& spec : specs) spec.sparse = test_case.flag("sparse");
    if (!test_case.flag("consumer")) return specs;
    size_t outputs = specs.size();
    add_buffers(test_case, "output", test_case.number("output_offset").max() + largest, specs);
    for (size_t i = outputs; i < specs.size(); ++i) {
      specs[i].peer_access = false;
      specs[i].multicast = false;
    }
    return specs;
  }

  Blob args(const Case& test_case, int rank) const override {
    std::vector<BufferSpec> specs = buffers(test_case);
    BlobBuilder builder(rank, sizeof(cb_args));
    cb_args fields = {};
    fields.role = role_of(test_case, rank);
    fields.partner = partner_of(test_case, rank);
    fields.max_bytes = test_case.number("bytes").max();
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
      if (role_of(test_case, rank) == CB_P2P_SENDER) {
        plan.inputs.push_back(
            {{call.source_buffer, call.source_offset, call.bytes}, sent_data(key, number, rank)});
      }
      if (role_of(test_case, rank) != CB_P2P_RECEIVER) continue;
      Suspect stale;
      if (!before.empty()) {
        stale = {"previous step's data", sent_data(previous(key), number, rank - 1),
                 before[c].bytes};
      }
      auto check = [&](const std::string& role, const Region& region) {
        std::vector<Suspect> suspects = common_suspects(key, rank, region);
        if (stale.content != nullptr) suspects.push_back(stale);
        plan.outputs.push_back(
            std::make_unique<ContentCheck>(call_label(role, test_case, number), region, Dtype::kU8,
                                           sent_data(key, number, rank - 1), std::move(suspects)));
      };
      check("target", {call.target_buffer, call.target_offset, call.bytes});
      if (test_case.flag("consumer")) {
        check("output", {call.output_buffer, call.output_offset, call.bytes});
      }
    }
    return plan;
  }

  Traffic traffic(const Case& test_case, const StepKey& key) const override {
    Traffic traffic;
    for (const Call& call : draw_calls(test_case, key)) {
      traffic.bytes += call.bytes;
      traffic.count += call.bytes;
    }
    return traffic;
  }

  std::vector<std::string> wrong_modes(const Case& test_case) const override {
    WorkSteps work = work_steps(test_case, "bytes", test_case.number("bytes").max());
    if (!work.some) return {};
    std::vector<std::string> modes = {"zeros", "own-input", "skip-tail", "nothing"};
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
    fields.bytes = call.bytes;
    fields.sequence = call.sequence;
    builder.put(0, fields);
    builder.put_span(offsetof(cb_step, source), {&specs[call.source_buffer], call.source_buffer,
                                                 same(call.source_offset), call.bytes});
    builder.put_span(offsetof(cb_step, target), {&specs[call.target_buffer], call.target_buffer,
                                                 same(call.target_offset), call.bytes});
    if (test_case.flag("consumer")) {
      builder.put_span(offsetof(cb_step, output), {&specs[call.output_buffer], call.output_buffer,
                                                   same(call.output_offset), call.bytes});
    }
    return builder.take();
  }
};

}  // namespace

const Family* p2p_family() {
  static const P2pFamily family;
  return &family;
}

}  // namespace cb::tasks
