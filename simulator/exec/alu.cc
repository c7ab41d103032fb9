#include "simulator/exec/alu.h"

#include <algorithm>
#include <bit>
#include <unordered_map>

#include "base/check.h"
#include "simulator/exec/alu_query.h"

namespace cb::sim {
namespace {

using Table = std::unordered_map<std::string_view, std::vector<AluFinder>>;

const Table& table() {
  static const Table finders = [] {
    Table result;
    for (auto entries :
         {move_entries(), predicate_entries(), carry_entries(), integer_entries(), divide_entries(),
          logic_entries(), bit_entries(), float_entries(), float_function_entries(), half_entries(),
          compare_entries(), select_entries(), convert_packed_entries(), convert_integer_entries(),
          convert_entries(), video_entries(), video_simd_entries()}) {
      for (const AluEntry& entry : entries) result[entry.opcode].push_back(entry.find);
    }
    return result;
  }();
  return finders;
}

bool reads_address_or_special(const ptx::Instruction& instruction) {
  if (instruction.opcode != "mov" || instruction.operands.size() != 2) return false;
  using Kind = ptx::Operand::Kind;
  Kind kind = instruction.operands[1].kind;
  return kind == Kind::kSpecial || kind == Kind::kVariable || kind == Kind::kLabel;
}

}  // namespace

std::optional<Result<AluSpec>> find_alu(const ptx::Instruction& instruction,
                                        const ptx::Function& function) {
  auto found = table().find(instruction.opcode);
  if (found == table().end() || reads_address_or_special(instruction)) return std::nullopt;
  if (instruction.modifiers.size() > AluQuery::kMaxModifiers) {
    return AluQuery(instruction, function).refuse("too many modifiers");
  }
  for (AluFinder find : found->second) {
    AluQuery query(instruction, function);
    if (auto answer = find(query)) return answer;
  }
  return AluQuery(instruction, function).refuse("this type is not supported for sm_90");
}

void place_operand(MicroOp& op, const AluOperand& operand, Slot slot, bool negated) {
  switch (operand.place) {
    case AluPlace::kD:
      op.d = slot;
      return;
    case AluPlace::kA:
      op.a = slot;
      if (negated) op.aux |= kNegatedA;
      return;
    case AluPlace::kB:
      op.b = slot;
      if (negated) op.aux |= kNegatedB;
      return;
    case AluPlace::kC:
      op.c = slot;
      return;
    case AluPlace::kExtra:
      op.immediate |= slot.index | uint64_t{slot.vector} << 16;
      return;
    case AluPlace::kPair:
      op.immediate |= uint64_t{slot.index} << 16;
      return;
    case AluPlace::kCondition:
      op.immediate |= uint64_t{slot.index} << 32 | uint64_t{negated} << 48;
      return;
  }
}

uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type) {
  CB_CHECK(operand.kind == ptx::Operand::Kind::kImmediate, "not an immediate operand");
  if (type == ptx::Type::kPred) return operand.bits != 0;
  uint64_t bits = operand.bits;
  if (type == ptx::Type::kF32 && operand.is_double) {
    bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
  } else if (type == ptx::Type::kF64 && operand.is_float && !operand.is_double) {
    float value = std::bit_cast<float>(static_cast<uint32_t>(bits));
    bits = std::bit_cast<uint64_t>(static_cast<double>(value));
  }
  unsigned bytes = ptx::bytes_of(type);
  return bytes >= 8 ? bits : bits & ((uint64_t{1} << (8 * bytes)) - 1);
}

std::vector<std::string_view> alu_opcodes() {
  std::vector<std::string_view> opcodes;
  for (const auto& [opcode, finders] : table()) opcodes.push_back(opcode);
  std::sort(opcodes.begin(), opcodes.end());
  return opcodes;
}

}  // namespace cb::sim
