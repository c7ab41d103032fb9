// Video instructions on the two halves or four bytes of registers: vadd2, vadd4 and their
// neighbours. Each part of the result is made of one part of each source, chosen among those of
// both; parts that the destination does not take come from c, or everything is added to it.

#include <array>
#include <bit>
#include <vector>

#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lane_ops.h"
#include "simulator/exec/video.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;
using Class = AluSpec::Class;

/// MicroOp::immediate of an instruction, the upper three bytes but zero: they hold the selection.
struct Plan {
  VideoOperation operation;
  VideoCompare compare;
  uint8_t parts;  ///< 2 or 4
  uint8_t signs;
  uint8_t taken;  ///< bit i: part i of the destination
  uint8_t zero[3];
};
static_assert(sizeof(Plan) == 8);
constexpr int kSelectionShift = 40;
enum Sign : uint8_t { kSignedD = 1, kSignedA = 2, kSignedB = 4, kSaturates = 8, kAccumulates = 16 };

class SimdVideo {
 public:
  static constexpr bool kPerLane = true;

  explicit SimdVideo(const MicroOp* op)
      : plan_(std::bit_cast<Plan>(op->immediate & ((uint64_t{1} << kSelectionShift) - 1))),
        selection_(static_cast<uint32_t>(op->immediate >> kSelectionShift)) {}

  uint32_t apply(uint32_t a, uint32_t b, uint32_t c) const {
    int bits = 32 / plan_.parts;
    uint32_t mask = (1u << bits) - 1;
    uint64_t pair = uint64_t{b} << 32 | a;
    uint32_t merged = 0, sum = c;
    for (int i = 0; i < plan_.parts; ++i) {
      bool taken = (plan_.taken >> i & 1) != 0;
      int64_t result = 0;
      if (taken) {
        int64_t x = chosen(pair, i, bits, has(kSignedA));
        int64_t y = chosen(pair, i + plan_.parts, bits, has(kSignedB));
        result = plan_.operation == VideoOperation::kSet ? (holds(plan_.compare, x, y) ? 1 : 0)
                                                         : video_result(plan_.operation, x, y);
        if (has(kSaturates)) {
          result = static_cast<int64_t>(clamp_field(result, bits, has(kSignedD)));
        }
      }
      sum += static_cast<uint32_t>(result);
      uint32_t part = taken ? static_cast<uint32_t>(result) : c >> (i * bits);
      merged |= (part & mask) << (i * bits);
    }
    return has(kAccumulates) ? sum : merged;
  }

 private:
  bool has(Sign sign) const { return (plan_.signs & sign) != 0; }

  /// The part of the pair {b, a} that source part `place` is: those of a come first, then b's.
  int64_t chosen(uint64_t pair, int place, int bits, bool is_signed) const {
    int width = plan_.parts == 2 ? 2 : 3;
    uint32_t index = selection_ >> (place * width) & ((1u << width) - 1);
    return extend_field(static_cast<uint32_t>(pair >> (index * static_cast<uint32_t>(bits))), bits,
                        is_signed);
  }

  Plan plan_;
  uint32_t selection_;
};

struct Named {
  std::string_view name;
  VideoOperation operation;
};
constexpr Named kOperations[] = {
    {"vadd", VideoOperation::kAdd},         {"vsub", VideoOperation::kSub},
    {"vabsdiff", VideoOperation::kAbsDiff}, {"vmin", VideoOperation::kMin},
    {"vmax", VideoOperation::kMax},         {"vavrg", VideoOperation::kAverage},
    {"vset", VideoOperation::kSet},
};

/// Digits of a selector or mask such as "h10" or "b3210", the last first; nullopt where `name` is
/// no letter and digits below `limit`.
std::optional<std::vector<uint32_t>> digits_of(std::string_view name, char letter, uint32_t limit) {
  if (name.empty() || name[0] != letter) return std::nullopt;
  std::vector<uint32_t> digits;
  for (size_t i = name.size(); i-- > 1;) {
    auto digit = static_cast<uint32_t>(name[i] - '0');
    if (digit >= limit) return std::nullopt;
    digits.push_back(digit);
  }
  return digits;
}

/// Bit i: the destination takes part i. The digits of a mask fall.
std::optional<uint8_t> mask_of(const Operand& operand, char letter, uint32_t parts) {
  if (operand.name.empty()) return static_cast<uint8_t>((1u << parts) - 1);
  auto digits = digits_of(operand.name, letter, parts);
  if (!digits || digits->empty()) return std::nullopt;
  uint8_t mask = 0;
  for (uint32_t digit : *digits) {
    if (mask >> digit != 0) return std::nullopt;
    mask |= static_cast<uint8_t>(1u << digit);
  }
  return mask;
}

/// Appends the parts that a source takes, from bit `place` on; false where there is no such part.
bool select_parts(const Operand& operand, char letter, uint32_t parts, uint32_t first,
                  uint32_t& selection, uint32_t& place) {
  uint32_t width = parts == 2 ? 2 : 3;
  std::vector<uint32_t> chosen;
  if (operand.name.empty()) {
    for (uint32_t i = 0; i < parts; ++i) chosen.push_back(first + i);
  } else {
    auto digits = digits_of(operand.name, letter, 2 * parts);
    if (!digits || digits->size() != parts) return false;
    chosen = *digits;
  }
  for (uint32_t part : chosen) {
    selection |= part << place;
    place += width;
  }
  return true;
}

Result<AluSpec> finish_simd(AluQuery& query, Plan plan) {
  const auto& operands = query.instruction().operands;
  if (operands.size() != 4) return query.refuse("four operands are expected");
  char letter = plan.parts == 2 ? 'h' : 'b';
  for (const Operand& operand : operands) {
    if (operand.negated) return query.refuse("a sign is for vmad only");
  }
  auto mask = mask_of(operands[0], letter, plan.parts);
  uint32_t selection = 0, place = 0;
  if (!mask || !operands[3].name.empty() ||
      !select_parts(operands[1], letter, plan.parts, 0, selection, place) ||
      !select_parts(operands[2], letter, plan.parts, plan.parts, selection, place)) {
    return query.refuse("a selector or mask that this instruction does not have");
  }
  plan.taken = *mask;
  AluSpec spec;
  spec.immediate = std::bit_cast<uint64_t>(plan) | uint64_t{selection} << kSelectionShift;
  spec.latency_class = Class::kHalfRate;
  spec.fn = lane_op3<SimdVideo, uint32_t, uint32_t, uint32_t, uint32_t>;
  constexpr Type kWord = Type::kB32;
  return query.finish(spec, {kWord, kWord, kWord, kWord});
}

std::optional<Result<AluSpec>> find_simd(AluQuery& query) {
  std::string_view opcode = query.opcode();
  Plan plan{};
  plan.parts = opcode.back() == '2' ? 2 : 4;
  for (const Named& named : kOperations) {
    if (named.name == opcode.substr(0, opcode.size() - 1)) plan.operation = named.operation;
  }
  bool is_set = plan.operation == VideoOperation::kSet;
  constexpr uint8_t kAll[] = {kSignedD, kSignedA, kSignedB};
  for (size_t i = is_set ? 1 : 0; i < 3; ++i) {
    Type type = query.take_type();
    if (type != Type::kS32 && type != Type::kU32) return query.refuse_modifiers();
    if (type == Type::kS32) plan.signs |= kAll[i];
  }
  if (is_set) {
    auto compare = take_video_compare(query);
    if (!compare) return query.refuse_modifiers();
    plan.compare = *compare;
  } else if (query.take("sat")) {
    plan.signs |= kSaturates;
  }
  if ((plan.signs & kSaturates) == 0 && query.take("add")) plan.signs |= kAccumulates;
  return finish_simd(query, plan);
}

constexpr AluEntry kEntries[] = {
    {"vadd2", find_simd}, {"vsub2", find_simd},  {"vavrg2", find_simd},    {"vabsdiff2", find_simd},
    {"vmin2", find_simd}, {"vmax2", find_simd},  {"vset2", find_simd},     {"vadd4", find_simd},
    {"vsub4", find_simd}, {"vavrg4", find_simd}, {"vabsdiff4", find_simd}, {"vmin4", find_simd},
    {"vmax4", find_simd}, {"vset4", find_simd},
};

}  // namespace

std::span<const AluEntry> video_simd_entries() { return kEntries; }

}  // namespace cb::sim
