// What a wait loop waits for, read from its code: the comparison that decides whether it goes round
// again, one side of which it loads anew each time.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "simulator/exec/engine_state.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

struct Comparison {
  const char* name;
  const char* sign;
  const char* mirrored;  ///< with its sides exchanged
  const char* negated;
  const char* mirrored_negated;
};
constexpr Comparison kComparisons[] = {
    {"eq", "==", "==", "!=", "!="}, {"ne", "!=", "!=", "==", "=="}, {"lt", "<", ">", ">=", "<="},
    {"le", "<=", ">=", ">", "<"},   {"gt", ">", "<", "<=", ">="},   {"ge", ">=", "<=", "<", ">"},
    {"lo", "<", ">", ">=", "<="},   {"ls", "<=", ">=", ">", "<"},   {"hi", ">", "<", "<=", ">="},
    {"hs", ">=", "<=", "<", ">"},
};

/// An integer register of one lane, sign-extended where the comparison is signed.
int64_t lane_value(const Frame& frame, Slot slot, unsigned bytes, bool is_signed, int lane) {
  const Meta& meta = frame.meta[slot.index];
  uint64_t bits = 0;
  if (meta.is_vector) {
    std::memcpy(&bits, frame.vectors + size_t{slot.vector} * 64 + static_cast<size_t>(lane) * bytes,
                bytes);
  } else {
    bits = affine_lane<uint64_t>(meta, lane);
  }
  unsigned unused = 64 - 8 * bytes;
  if (is_signed) return static_cast<int64_t>(bits << unused) >> unused;
  return static_cast<int64_t>(bits << unused >> unused);
}

bool is_loaded(const FunctionCode& code, uint32_t first, uint32_t last, uint16_t slot) {
  return std::any_of(code.ops.begin() + first, code.ops.begin() + last, [&](const MicroOp& op) {
    return (op.flags & kOpLoad) != 0 && op.d.index == slot;
  });
}

}  // namespace

std::string awaited_value(const Group& group) {
  const FunctionCode& code = *group.frame->code;
  if (group.spin_pc >= code.ops.size() || group.pc > group.spin_pc) return "";
  const MicroOp& branch = code.ops[group.spin_pc];
  if (branch.guard < 0) return "";
  for (uint32_t at = group.spin_pc; at-- > group.pc;) {
    const MicroOp& op = code.ops[at];
    const ptx::Instruction& instruction = code.source->body[code.info[at].instruction];
    if (instruction.opcode != "setp" || op.d.index != static_cast<uint16_t>(branch.guard) ||
        instruction.modifiers.size() != 2) {
      continue;
    }
    const auto* comparison =
        std::find_if(std::begin(kComparisons), std::end(kComparisons),
                     [&](const Comparison& one) { return instruction.modifiers[0] == one.name; });
    ptx::Type type = ptx::type_from_name(instruction.modifiers[1]);
    bool is_signed = type == ptx::Type::kS32 || type == ptx::Type::kS64;
    unsigned bytes = ptx::bytes_of(type);
    bool is_integer = is_signed || type == ptx::Type::kU32 || type == ptx::Type::kU64 ||
                      type == ptx::Type::kB32 || type == ptx::Type::kB64;
    if (comparison == std::end(kComparisons) || !is_integer) return "";
    bool loads_left = is_loaded(code, group.pc, at, op.a.index);
    if (loads_left == is_loaded(code, group.pc, at, op.b.index)) return "";
    bool negated = (branch.flags & kOpGuardNegated) != 0;
    const char* sign = loads_left ? (negated ? comparison->negated : comparison->sign)
                                  : (negated ? comparison->mirrored_negated : comparison->mirrored);
    int64_t value = lane_value(*group.frame, loads_left ? op.b : op.a, bytes, is_signed,
                               std::countr_zero(group.mask));
    return is_signed ? fmt::format("{} {}", sign, value)
                     : fmt::format("{} {}", sign, static_cast<uint64_t>(value));
  }
  return "";
}

}  // namespace cb::sim
