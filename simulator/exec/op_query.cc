#include "simulator/exec/op_query.h"

#include <fmt/format.h>

#include "simulator/exec/convert.h"
#include "simulator/exec/memory_ops_address.h"

namespace cb::sim {

using ptx::Operand;
using ptx::Type;

Type OpQuery::type_of(const Operand& operand) const {
  if (operand.reg < 0) return Type::kNone;
  return function_.registers[static_cast<size_t>(operand.reg)].type;
}

const Operand* element_of(const Operand& operand, int element) {
  const std::vector<Operand>* elements = &operand.elements;
  auto index = static_cast<size_t>(element);
  if (operand.kind == Operand::Kind::kCoordinates && index > 0) {
    if (elements->size() != 2) return nullptr;
    elements = &(*elements)[1].elements;
    --index;
  }
  return index < elements->size() ? &(*elements)[index] : nullptr;
}

int OpQuery::take_one(std::initializer_list<std::string_view> modifiers) {
  int index = 0;
  for (std::string_view modifier : modifiers) {
    if (take(modifier)) return index;
    ++index;
  }
  return -1;
}

std::optional<std::string> OpQuery::problem_of(const OpOperand& wanted) const {
  const AluOperand& plain = wanted.plain;
  if (plain.index >= num_operands()) return "too few operands";
  const Operand* found = &operand(plain.index);
  if (plain.element >= 0) found = element_of(*found, plain.element);
  if (found == nullptr) return fmt::format("operand {} has too few elements", plain.index + 1);
  std::string where = fmt::format("operand {}", plain.index + 1);
  if (wanted.kind == OpOperand::Kind::kAddress || wanted.kind == OpOperand::Kind::kListedAddress) {
    if (found->kind != Operand::Kind::kMemory && found->kind != Operand::Kind::kVariable) {
      return where + " must be an address";
    }
    unsigned bytes = ptx::bytes_of(type_of(*found));
    if (found->reg >= 0 && bytes != 4 && bytes != 8) {
      return where + ": an address has 32 or 64 bits";
    }
    return std::nullopt;
  }
  if (found->kind == Operand::Kind::kSink && plain.is_destination) return std::nullopt;
  if (found->kind == Operand::Kind::kImmediate && !plain.is_destination) return std::nullopt;
  if (found->kind != Operand::Kind::kRegister) {
    return fmt::format("{} must be a register{}", where,
                       plain.is_destination ? "" : " or a constant");
  }
  Type type = type_of(*found);
  if ((type == Type::kPred) != (plain.type == Type::kPred) ||
      ptx::bytes_of(type) != ptx::bytes_of(plain.type)) {
    return fmt::format("{} is declared .{} but .{} is expected", where, ptx::name_of(type),
                       ptx::name_of(plain.type));
  }
  return std::nullopt;
}

Result<OpSpec> OpQuery::finish(OpSpec spec, size_t expected) const {
  if (!next().empty() || spec.fn == nullptr) return refuse_modifiers();
  if (num_operands() != expected) {
    return refuse(fmt::format("{} operands where {} are expected", num_operands(), expected));
  }
  for (const OpOperand& wanted : spec.operands) {
    if (auto problem = problem_of(wanted)) return refuse(*problem);
  }
  return spec;
}

void add_plain(OpSpec& spec, size_t index, AluPlace place, Type type, bool is_destination,
               int element) {
  spec.operands.push_back(
      {OpOperand::Kind::kPlain,
       {static_cast<uint8_t>(index), static_cast<int8_t>(element), place, type, is_destination}});
}

void add_listed(OpSpec& spec, size_t index, Type type, bool is_destination, int element) {
  spec.operands.push_back({OpOperand::Kind::kList,
                           {static_cast<uint8_t>(index), static_cast<int8_t>(element), AluPlace::kD,
                            type, is_destination}});
}

void add_address(const OpQuery& query, OpSpec& spec, size_t index) {
  Type type = index < query.num_operands() ? query.type_of(query.operand(index)) : Type::kNone;
  if (ptx::bytes_of(type) == 4) spec.aux |= kNarrowAddress;
  if (type == Type::kNone) type = Type::kB64;
  spec.operands.push_back(
      {OpOperand::Kind::kAddress, {static_cast<uint8_t>(index), -1, AluPlace::kA, type, false}});
}

Type register_type_for(Type type, unsigned bytes) {
  return ptx::bytes_of(type) == bytes ? type : bits_type(bytes);
}

std::optional<Result<OpSpec>> find_in(std::span<const std::span<const OpEntry>> families,
                                      const ptx::Instruction& instruction,
                                      const OpContext& context) {
  for (auto entries : families) {
    for (const OpEntry& entry : entries) {
      if (entry.opcode != instruction.opcode) continue;
      OpQuery query(instruction, context);
      if (instruction.modifiers.size() > AluQuery::kMaxModifiers) {
        return query.refuse("too many modifiers");
      }
      if (auto answer = entry.find(query)) return answer;
    }
  }
  return std::nullopt;
}

}  // namespace cb::sim
