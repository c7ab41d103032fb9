#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "base/check.h"
#include "tasks/blob_builder.h"
#include "tasks/card.h"
#include "tasks/content.h"
#include "tasks/content_check.h"
#include "tasks/families.h"
#include "tasks/pool.h"
#include "tasks/reduction.h"

// The same draws are made on every rank: counts, offsets and buffers come from seeds that do not
// name a rank, data from seeds that do. Data movement carries full-entropy bytes and is compared
// bit by bit; reductions use the exact inputs of reduction.h and are compared the same way.

// Each family's header completes cb_args and cb_step in its own way; renaming them here keeps one
// definition per name in the program.
#define cb_args cb_collective_args
#define cb_step cb_collective_step
#include <commbench/families/collective.h>

namespace cb::tasks {
namespace {

enum class Collective : uint8_t { kAllReduce, kAllGather, kReduceScatter, kAllToAll, kBroadcast };
const std::vector<std::string> kNames = {"all-reduce", "all-gather", "reduce-scatter", "all-to-all",
                                         "broadcast"};
static_assert(static_cast<int>(Collective::kBroadcast) == CB_BROADCAST);
static_assert(static_cast<int>(Dtype::kF64) == CB_F64);
static_assert(static_cast<int>(ReduceOp::kMax) == CB_MAX);

constexpr uint64_t kMaxRegionBytes = uint64_t{1} << 30;
constexpr uint64_t kManyElements = 32;

/// What the parameters of a case say, in types.
struct Shape {
  explicit Shape(const Case& test_case)
      : collective(static_cast<Collective>(
            std::find(kNames.begin(), kNames.end(), test_case.word("collective")) -
            kNames.begin())),
        dtype(dtype_from_name(test_case.word("dtype"))),
        op(reduce_op_from_name(test_case.word("op"))),
        in_place(test_case.flag("in_place")),
        ranks(static_cast<uint64_t>(test_case.world_size)),
        element(element_bytes(dtype)) {}

  bool reduces() const {
    return collective == Collective::kAllReduce || collective == Collective::kReduceScatter;
  }
  uint64_t input_blocks() const {
    return collective == Collective::kReduceScatter || collective == Collective::kAllToAll ? ranks
                                                                                           : 1;
  }
  uint64_t output_blocks() const {
    return collective == Collective::kAllGather || collective == Collective::kAllToAll ? ranks : 1;
  }
  uint64_t input_bytes(uint64_t count) const { return input_blocks() * count * element; }
  uint64_t output_bytes(uint64_t count) const { return output_blocks() * count * element; }
  /// Where rank `rank`'s input starts after the output, or its output after the input, in place.
  uint64_t in_place_shift(uint64_t count, int rank) const {
    bool shifted = collective == Collective::kAllGather || collective == Collective::kReduceScatter;
    return shifted ? static_cast<uint64_t>(rank) * count * element : 0;
  }

  Collective collective;
  Dtype dtype;
  ReduceOp op;
  bool in_place;
  uint64_t ranks;
  uint64_t element;
};

/// One cb_run: what of it is the same on every rank.
struct Call {
  uint64_t count = 0;
  int root = 0;
  uint32_t input_buffer = 0;
  uint32_t output_buffer = 0;
  std::vector<uint64_t> input_offsets;  ///< per rank, from the start of the buffer
  std::vector<uint64_t> output_offsets;
};

std::vector<Call> draw_calls(const Case& test_case, const StepKey& key) {
  Shape shape(test_case);
  auto pool = static_cast<uint32_t>(test_case.pool);
  std::vector<uint32_t> inputs = shuffled_buffers(key, "input buffers", 0, pool);
  std::vector<uint32_t> outputs = shuffled_buffers(key, "output buffers", pool, pool);
  std::vector<Call> calls;
  for (int c = 0; c < test_case.calls; ++c) {
    uint64_t index = draw_index(test_case, key, c);
    auto place = static_cast<size_t>(c);
    Call call;
    call.count = test_case.number("count").draw(key, "count", index);
    call.root = static_cast<int>(CounterRandom(key.seed("roots")).below(index, shape.ranks));
    call.output_buffer = outputs[place];
    call.input_buffer = shape.in_place ? call.output_buffer : inputs[place];
    uint64_t output = kGuardBytes + test_case.number("output_offset").draw(key, "output at", index);
    uint64_t input = kGuardBytes + test_case.number("input_offset").draw(key, "input at", index);
    for (int rank = 0; rank < test_case.world_size; ++rank) {
      uint64_t shift = shape.in_place ? shape.in_place_shift(call.count, rank) : 0;
      bool output_moves = shape.collective == Collective::kReduceScatter;
      call.output_offsets.push_back(output + (output_moves ? shift : 0));
      call.input_offsets.push_back(shape.in_place ? output + (output_moves ? 0 : shift) : input);
    }
    calls.push_back(std::move(call));
  }
  return calls;
}

using ContentPtr = std::shared_ptr<const Content>;

/// What all ranks give to one call, and what each gets.
class Data {
 public:
  Data(const Case& test_case, const StepKey& key, int call, uint64_t count, int root)
      : shape_(test_case), count_(count), root_(root) {
    std::vector<uint64_t> seeds;
    seeds.reserve(shape_.ranks);
    inputs_.reserve(shape_.ranks);
    for (int rank = 0; rank < test_case.world_size; ++rank) {
      seeds.push_back(key.seed(fmt::format("input of call {} rank {}", call, rank)));
    }
    if (shape_.reduces()) {
      reduction_ = std::make_shared<Reduction>(shape_.dtype, shape_.op, seeds,
                                               key.seed(fmt::format("scale of call {}", call)));
      for (int rank = 0; rank < test_case.world_size; ++rank) {
        inputs_.push_back(reduction_->input(rank));
      }
    } else {
      for (uint64_t seed : seeds) inputs_.push_back(std::make_shared<RandomContent>(seed));
    }
  }

  uint64_t output_bytes() const { return shape_.output_bytes(count_); }
  const ContentPtr& input(int rank) const { return inputs_[static_cast<size_t>(rank)]; }

  ContentPtr output(int rank) const {
    uint64_t block = count_ * shape_.element;
    uint64_t own = static_cast<uint64_t>(rank) * block;
    switch (shape_.collective) {
      case Collective::kAllReduce:
        return reduction_->result();
      case Collective::kReduceScatter:
        return part_of(reduction_->result(), own, block);
      case Collective::kBroadcast:
        return input(root_);
      case Collective::kAllGather:
        return pieces([&](int) { return uint64_t{0}; });
      case Collective::kAllToAll:
        return pieces([&](int) { return own; });
    }
    return nullptr;
  }

  /// What a wrong program leaves in rank `rank`'s output.
  std::vector<Suspect> suspects(int rank) const {
    uint64_t block = count_ * shape_.element;
    uint64_t own = static_cast<uint64_t>(rank) * block;
    std::vector<Suspect> found;
    for (int source = 0; source < static_cast<int>(shape_.ranks); ++source) {
      std::string whose = source == rank ? "own input" : fmt::format("rank {}'s input", source);
      if (shape_.collective == Collective::kAllToAll) {
        found.push_back(
            {fmt::format("{}, block {}", whose, rank), repeated(source, own), output_bytes()});
        found.push_back({whose + ", not exchanged", input(source), output_bytes()});
      } else {
        uint64_t start = shape_.collective == Collective::kReduceScatter ? own : 0;
        found.push_back({whose, repeated(source, start), output_bytes()});
      }
      if (reduction_ != nullptr) {
        uint64_t start = shape_.collective == Collective::kReduceScatter ? own : 0;
        found.push_back({fmt::format("rank {} left out", source),
                         part_of(reduction_->result_without(source), start, output_bytes()),
                         output_bytes()});
      }
    }
    return found;
  }

 private:
  template <typename OffsetOf>
  ContentPtr pieces(OffsetOf offset_of) const {
    std::vector<PiecesContent::Piece> parts;
    parts.reserve(shape_.ranks);
    for (int rank = 0; rank < static_cast<int>(shape_.ranks); ++rank) {
      parts.push_back({input(rank), offset_of(rank)});
    }
    return std::make_shared<PiecesContent>(std::move(parts), block_or_one());
  }
  /// The same part of one rank's input in every block of the output.
  ContentPtr repeated(int source, uint64_t offset) const {
    std::vector<PiecesContent::Piece> parts(shape_.output_blocks(), {input(source), offset});
    return std::make_shared<PiecesContent>(std::move(parts), block_or_one());
  }
  uint64_t block_or_one() const { return std::max<uint64_t>(count_ * shape_.element, 1); }

  Shape shape_;
  uint64_t count_;
  int root_;
  std::shared_ptr<Reduction> reduction_;
  std::vector<ContentPtr> inputs_;
};

class CollectiveFamily final : public Family {
 public:
  std::string_view name() const override { return "collective"; }

  std::vector<Parameter> parameters() const override {
    using Kind = Parameter::Kind;
    return {
        {"collective", Kind::kWord, kNames, {}},       {"dtype", Kind::kWord, dtype_names(), {}},
        {"op", Kind::kWord, reduce_op_names(), "sum"}, {"count", Kind::kNumbers, {}, {}},
        {"input_offset", Kind::kNumbers, {}, "0"},     {"output_offset", Kind::kNumbers, {}, "0"},
        {"in_place", Kind::kFlag, {}, "false"}};
  }

  void validate(const Case& test_case) const override {
    Shape shape(test_case);
    uint64_t largest = test_case.number("count").max();
    auto require = [](bool condition, const std::string& message) {
      if (!condition) throw Error(ErrorCode::kConfig, message);
    };
    require(shape.reduces() || shape.op == ReduceOp::kSum,
            fmt::format("op: {} has none", test_case.word("collective")));
    require(!(shape.in_place && shape.collective == Collective::kAllToAll),
            "in_place: all-to-all has no in-place form");
    require(!shape.in_place || test_case.number("input_offset").max() == 0,
            "input_offset: in place, the input lies where output_offset says");
    require(largest <= kMaxRegionBytes / shape.element / shape.ranks,
            fmt::format("count: {} elements of {} bytes on {} ranks are more than 1 GiB", largest,
                        shape.element, shape.ranks));
    bool float_product = shape.op == ReduceOp::kProd && is_float(shape.dtype);
    require(!float_product || test_case.world_size <= kMaxProductRanks,
            fmt::format("op: products of floats are exact on at most {} ranks", kMaxProductRanks));
    require_aligned(test_case, {"input_offset", "output_offset"}, shape.element);
  }

  std::vector<BufferSpec> buffers(const Case& test_case) const override {
    Shape shape(test_case);
    uint64_t largest = test_case.number("count").max();
    uint64_t input = test_case.number("input_offset").max() + shape.input_bytes(largest);
    uint64_t output = test_case.number("output_offset").max() + shape.output_bytes(largest);
    if (shape.in_place) {
      output = test_case.number("output_offset").max() +
               std::max(shape.input_bytes(largest), shape.output_bytes(largest));
    }
    std::vector<BufferSpec> specs;
    add_buffers(test_case, "input", input, specs);
    add_buffers(test_case, "output", output, specs);
    return specs;
  }

  Blob args(const Case& test_case, int rank) const override {
    Shape shape(test_case);
    std::vector<BufferSpec> specs = buffers(test_case);
    BlobBuilder builder(rank, sizeof(cb_args));
    cb_args fields = {};
    fields.collective = static_cast<cb_collective>(shape.collective);
    fields.dtype = static_cast<cb_dtype>(shape.dtype);
    fields.redop = static_cast<cb_redop>(shape.op);
    fields.max_count = test_case.number("count").max();
    fields.num_buffers = static_cast<uint32_t>(specs.size());
    builder.put(0, fields);
    put_buffers(test_case, specs, offsetof(cb_args, buffers), builder);
    return builder.take();
  }

  StepPlan plan(const Case& test_case, const StepKey& key, int rank) const override {
    Shape shape(test_case);
    std::vector<BufferSpec> specs = buffers(test_case);
    std::vector<Call> calls = draw_calls(test_case, key);
    std::vector<Call> before;
    if (key.step > 0) before = draw_calls(test_case, previous(key));
    StepPlan plan;
    plan.lifetime = Lifetime::kRank;
    plan.inputs_constant = !shape.in_place;
    for (size_t c = 0; c < calls.size(); ++c) {
      const Call& call = calls[c];
      auto number = static_cast<int>(c);
      Data data(test_case, key, number, call.count, call.root);
      plan.calls.push_back(step_blob(shape, specs, call, rank));
      auto own = static_cast<size_t>(rank);
      plan.inputs.push_back(
          {{call.input_buffer, call.input_offsets[own], shape.input_bytes(call.count)},
           data.input(rank)});
      Region region = {call.output_buffer, call.output_offsets[own],
                       shape.output_bytes(call.count)};
      std::vector<Suspect> suspects = common_suspects(key, rank, region);
      for (Suspect& suspect : data.suspects(rank)) suspects.push_back(std::move(suspect));
      if (!before.empty()) {
        Data stale(test_case, previous(key), number, before[c].count, before[c].root);
        suspects.push_back({"previous step's result", stale.output(rank), stale.output_bytes()});
      }
      plan.outputs.push_back(std::make_unique<ContentCheck>(call_label("output", test_case, number),
                                                            region, shape.dtype, data.output(rank),
                                                            std::move(suspects)));
    }
    return plan;
  }

  Traffic traffic(const Case& test_case, const StepKey& key) const override {
    Shape shape(test_case);
    auto ranks = static_cast<double>(shape.ranks);
    Traffic traffic;
    for (const Call& call : draw_calls(test_case, key)) {
      traffic.count += call.count;
      traffic.bytes += std::max(shape.input_bytes(call.count), shape.output_bytes(call.count));
    }
    traffic.bus_factor = shape.collective == Collective::kBroadcast   ? 1
                         : shape.collective == Collective::kAllReduce ? 2 * (ranks - 1) / ranks
                                                                      : (ranks - 1) / ranks;
    return traffic;
  }

  std::vector<std::string> wrong_modes(const Case& test_case) const override {
    Shape shape(test_case);
    const Choice& count = test_case.number("count");
    uint64_t largest = std::max(shape.input_bytes(count.max()), shape.output_bytes(count.max()));
    WorkSteps work = work_steps(test_case, "count", largest);
    if (!work.some) return {};
    std::vector<std::string> modes = {"zeros", "skip-tail", "nothing"};
    if (work.after_first_step) modes.emplace_back("stale");
    // Of few elements, a rank may hold every minimum itself.
    bool extremum = shape.op == ReduceOp::kMin || shape.op == ReduceOp::kMax;
    uint64_t certain = count.values().empty() ? count.min() : count.max();
    if (extremum && certain < kManyElements) return modes;
    modes.emplace_back("own-input");
    if (shape.collective == Collective::kBroadcast) return modes;
    modes.emplace_back("skip-rank");
    // For reduce-scatter, the own shard without communication is the own input.
    if (shape.collective != Collective::kReduceScatter) modes.emplace_back("own-shard");
    return modes;
  }

 private:
  static Blob step_blob(const Shape& shape, const std::vector<BufferSpec>& specs, const Call& call,
                        int rank) {
    auto own = static_cast<size_t>(rank);
    BlobBuilder builder(rank, sizeof(cb_step));
    cb_step fields = {};
    fields.count = call.count;
    fields.root = shape.collective == Collective::kBroadcast ? call.root : 0;
    fields.input_buffer = call.input_buffer;
    fields.output_buffer = call.output_buffer;
    fields.input_offset = call.input_offsets[own];
    fields.output_offset = call.output_offsets[own];
    fields.in_place = shape.in_place ? 1 : 0;
    builder.put(0, fields);
    builder.put_span(offsetof(cb_step, input), {&specs[call.input_buffer], call.input_buffer,
                                                call.input_offsets, shape.input_bytes(call.count)});
    builder.put_span(offsetof(cb_step, output),
                     {&specs[call.output_buffer], call.output_buffer, call.output_offsets,
                      shape.output_bytes(call.count)});
    return builder.take();
  }
};

}  // namespace

const Family* collective_family() {
  static const CollectiveFamily family;
  return &family;
}

}  // namespace cb::tasks
