// Video instructions on parts of registers: vadd, vsub, vabsdiff, vmin, vmax, vshl, vshr, vmad and
// vset. Sources are extended to integers of any size; the result is exact until it is saturated or
// cut to the destination. Hardware of sm_90 emulates these instructions, so that nothing here is
// made to be fast.

#include <algorithm>
#include <array>
#include <bit>

#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lane_ops.h"
#include "simulator/exec/video.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;
using Wide = __int128;

enum class Part : uint8_t { kWord, kB0, kB1, kB2, kB3, kH0, kH1 };
enum class Second : uint8_t { kNone, kAdd, kMin, kMax };

constexpr std::array<std::string_view, 7> kParts = {"", "b0", "b1", "b2", "b3", "h0", "h1"};

/// MicroOp::immediate of an instruction.
struct Plan {
  VideoOperation operation;
  VideoCompare compare;
  Second second;
  Part d, a, b;
  uint8_t shift;  ///< vmad: the result's
  uint8_t signs;
};
static_assert(sizeof(Plan) == 8);
enum Sign : uint8_t {
  kSignedD = 1,
  kSignedA = 2,
  kSignedB = 4,
  kSaturates = 8,
  kWraps = 16,
  kPlusOne = 32,
  kNegatesProduct = 64,
  kNegatesC = 128,
};

int shift_of(Part part) {
  if (part == Part::kWord || part == Part::kH0) return 0;
  return part == Part::kH1 ? 16 : 8 * (static_cast<int>(part) - static_cast<int>(Part::kB0));
}
int bits_of(Part part) {
  if (part == Part::kWord) return 32;
  return part == Part::kH0 || part == Part::kH1 ? 16 : 8;
}

Wide part_of(uint32_t value, Part part, bool is_signed) {
  return extend_field(value >> shift_of(part), bits_of(part), is_signed);
}

class ScalarVideo {
 public:
  static constexpr bool kPerLane = true;

  explicit ScalarVideo(const MicroOp* op) : plan_(std::bit_cast<Plan>(op->immediate)) {}

  uint32_t apply(uint32_t a, uint32_t b) const { return apply(a, b, 0); }
  uint32_t apply(uint32_t a, uint32_t b, uint32_t c) const {
    Wide x = part_of(a, plan_.a, has(kSignedA)), y = part_of(b, plan_.b, has(kSignedB));
    if (plan_.operation == VideoOperation::kMad) return multiply_add(x, y, c);
    Wide result = primary(x, y);
    if (has(kSaturates)) result = clamp_field(result, bits_of(plan_.d), has(kSignedD));
    // The third operand has the type of the destination, which of vset is that of its first source.
    Wide third = extend_field(c, 32, has(is_set() ? kSignedA : kSignedD));
    if (plan_.second == Second::kAdd) result += third;
    if (plan_.second == Second::kMin) result = std::min(result, third);
    if (plan_.second == Second::kMax) result = std::max(result, third);
    auto low = static_cast<uint32_t>(result);
    if (plan_.d == Part::kWord) return low;
    uint32_t mask = ((1u << bits_of(plan_.d)) - 1) << shift_of(plan_.d);
    return (low << shift_of(plan_.d) & mask) | (c & ~mask);
  }

 private:
  bool has(Sign sign) const { return (plan_.signs & sign) != 0; }
  bool is_set() const { return plan_.operation == VideoOperation::kSet; }

  Wide primary(Wide a, Wide b) const {
    if (is_set()) return holds(plan_.compare, a, b) ? 1 : 0;
    bool is_left = plan_.operation == VideoOperation::kShiftLeft;
    if (is_left || plan_.operation == VideoOperation::kShiftRight) {
      int amount = static_cast<int>(has(kWraps) ? b & 31 : std::min<Wide>(b, 32));
      return is_left ? a * (Wide{1} << amount) : a >> amount;
    }
    return video_result(plan_.operation, static_cast<int64_t>(a), static_cast<int64_t>(b));
  }

  uint32_t multiply_add(Wide a, Wide b, uint32_t c) const {
    bool negates = has(kNegatesProduct) || has(kNegatesC);
    bool is_signed = has(kSignedA) || has(kSignedB) || negates;
    Wide product = has(kNegatesProduct) ? -(a * b) : a * b;
    Wide third = extend_field(c, 32, is_signed);
    // c is complemented in 32 bits and extended then: the most negative number keeps its sign.
    if (has(kNegatesC)) third = extend_field(~c, 32, true) + 1;
    Wide sum = product + third + (has(kPlusOne) ? 1 : 0);
    sum >>= plan_.shift;
    if (has(kSaturates)) sum = clamp_field(sum, 32, is_signed);
    return static_cast<uint32_t>(sum);
  }

  Plan plan_;
};

struct Named {
  std::string_view opcode;
  VideoOperation operation;
};
constexpr Named kOperations[] = {
    {"vadd", VideoOperation::kAdd},         {"vsub", VideoOperation::kSub},
    {"vabsdiff", VideoOperation::kAbsDiff}, {"vmin", VideoOperation::kMin},
    {"vmax", VideoOperation::kMax},         {"vshl", VideoOperation::kShiftLeft},
    {"vshr", VideoOperation::kShiftRight},  {"vmad", VideoOperation::kMad},
    {"vset", VideoOperation::kSet},
};

std::optional<Part> part_named(std::string_view name) {
  for (size_t i = 0; i < kParts.size(); ++i) {
    if (kParts[i] == name) return static_cast<Part>(i);
  }
  return std::nullopt;
}

/// The types of d, a and b: vset has none for d.
bool take_signs(AluQuery& query, Plan& plan) {
  constexpr uint8_t kAll[] = {kSignedD, kSignedA, kSignedB};
  for (size_t i = plan.operation == VideoOperation::kSet ? 1 : 0; i < 3; ++i) {
    Type type = query.take_type();
    if (type != Type::kS32 && type != Type::kU32) return false;
    if (type == Type::kS32) plan.signs |= kAll[i];
  }
  return true;
}

void take_rest(AluQuery& query, Plan& plan) {
  if (plan.operation == VideoOperation::kMad) {
    if (query.take("po")) plan.signs |= kPlusOne;
    if (query.take("sat")) plan.signs |= kSaturates;
    plan.shift = query.take("shr7") ? 7 : query.take("shr15") ? 15 : 0;
    return;
  }
  if (plan.operation != VideoOperation::kSet && query.take("sat")) plan.signs |= kSaturates;
  if (query.take("add")) plan.second = Second::kAdd;
  if (query.take("min")) plan.second = Second::kMin;
  if (query.take("max")) plan.second = Second::kMax;
}

/// Takes the mode of a shift or the comparison of vset; false where it is missing.
bool take_mode(AluQuery& query, Plan& plan) {
  if (plan.operation == VideoOperation::kSet) {
    auto compare = take_video_compare(query);
    if (compare) plan.compare = *compare;
    return compare.has_value();
  }
  bool is_shift =
      plan.operation == VideoOperation::kShiftLeft || plan.operation == VideoOperation::kShiftRight;
  if (!is_shift) return true;
  if ((plan.signs & kSignedB) != 0) return false;
  if (query.take("wrap")) {
    plan.signs |= kWraps;
    return true;
  }
  return query.take("clamp");
}

std::optional<Result<AluSpec>> find_scalar(AluQuery& query) {
  Plan plan{};
  for (const Named& named : kOperations) {
    if (named.opcode == query.opcode()) plan.operation = named.operation;
  }
  if (!take_signs(query, plan) || !take_mode(query, plan)) return query.refuse_modifiers();
  take_rest(query, plan);
  bool is_mad = plan.operation == VideoOperation::kMad;
  const auto& operands = query.instruction().operands;
  if (operands.size() < 3) return query.refuse("three or four operands are expected");
  Part* parts[] = {&plan.d, &plan.a, &plan.b};
  for (size_t i = 0; i < operands.size() && i < 4; ++i) {
    auto part = part_named(operands[i].name);
    if (operands[i].kind == ptx::Operand::Kind::kRegister &&
        (!part || (i == 3 && *part != Part::kWord))) {
      return query.refuse("there is no part ." + operands[i].name);
    }
    if (i < 3 && operands[i].kind == ptx::Operand::Kind::kRegister) *parts[i] = *part;
    if (operands[i].negated && (!is_mad || i == 0)) return query.refuse("a sign is for vmad only");
  }
  bool merges = plan.d != Part::kWord;
  if (is_mad && merges) return query.refuse("the destination of vmad is a whole register");
  if (is_mad) {
    if (operands[1].negated != operands[2].negated) plan.signs |= kNegatesProduct;
    if (operands.size() > 3 && operands[3].negated) plan.signs |= kNegatesC;
    bool negates = (plan.signs & (kNegatesProduct | kNegatesC)) != 0;
    if (negates && (plan.signs & kPlusOne) != 0) return query.refuse(".po takes no signs");
    if ((plan.signs & kNegatesProduct) != 0 && (plan.signs & kNegatesC) != 0) {
      return query.refuse("the product and the summand cannot both be negated");
    }
  }
  if (merges && plan.second != Second::kNone) {
    return query.refuse("a second operation and a part of the destination exclude each other");
  }
  AluSpec spec;
  spec.immediate = std::bit_cast<uint64_t>(plan);
  spec.latency_class = Class::kHalfRate;
  bool has_third = is_mad || merges || plan.second != Second::kNone;
  constexpr Type kWord = Type::kB32;
  spec.fn = has_third ? lane_op3<ScalarVideo, uint32_t, uint32_t, uint32_t, uint32_t>
                      : lane_op2<ScalarVideo, uint32_t, uint32_t, uint32_t>;
  return has_third ? query.finish(spec, {kWord, kWord, kWord, kWord})
                   : query.finish(spec, {kWord, kWord, kWord});
}

constexpr AluEntry kEntries[] = {
    {"vadd", find_scalar}, {"vsub", find_scalar}, {"vabsdiff", find_scalar},
    {"vmin", find_scalar}, {"vmax", find_scalar}, {"vshl", find_scalar},
    {"vshr", find_scalar}, {"vmad", find_scalar}, {"vset", find_scalar},
};

}  // namespace

std::span<const AluEntry> video_entries() { return kEntries; }

}  // namespace cb::sim
