#include "simulator/exec/alu_query.h"

#include <fmt/format.h>

#include "base/check.h"

namespace cb::sim {

using ptx::Operand;
using ptx::Type;

ptx::Type AluQuery::last_type() const {
  for (size_t i = instruction_.modifiers.size(); i-- > 0;) {
    Type type = ptx::type_from_name(instruction_.modifiers[i]);
    if (type != Type::kNone) return type;
  }
  return Type::kNone;
}

bool AluQuery::take(std::string_view modifier) {
  for (size_t i = 0; i < instruction_.modifiers.size(); ++i) {
    if (instruction_.modifiers[i] == modifier && (taken_ >> i & 1) == 0) {
      taken_ |= uint64_t{1} << i;
      return true;
    }
  }
  return false;
}

std::string_view AluQuery::next() const {
  for (size_t i = 0; i < instruction_.modifiers.size(); ++i) {
    if ((taken_ >> i & 1) == 0) return instruction_.modifiers[i];
  }
  return {};
}

ptx::Type AluQuery::take_type() {
  std::string_view name = next();
  Type type = ptx::type_from_name(name);
  if (type != Type::kNone) take(name);
  return type;
}

std::optional<Rounding> AluQuery::take_rounding() {
  if (take("rn")) return Rounding::kNearest;
  if (take("rz")) return Rounding::kZero;
  if (take("rm")) return Rounding::kDown;
  if (take("rp")) return Rounding::kUp;
  return std::nullopt;
}

ptx::Type AluQuery::register_type(size_t index) const {
  if (index >= instruction_.operands.size()) return Type::kNone;
  const Operand& operand = instruction_.operands[index];
  if (operand.kind != Operand::Kind::kRegister) return Type::kNone;
  return function_.registers[static_cast<size_t>(operand.reg)].type;
}

tl::unexpected<Error> AluQuery::refuse(const std::string& why) const {
  return failure(ErrorCode::kConfig, fmt::format("ptx:{}: {}: {}", instruction_.text_line,
                                                 instruction_.full_name(), why));
}

tl::unexpected<Error> AluQuery::refuse_modifiers() const {
  std::string_view left = next();
  if (left.empty()) return refuse("this combination of modifiers is not supported for sm_90");
  return refuse(fmt::format("the modifier .{} is not supported here for sm_90", left));
}

std::optional<std::string> AluQuery::operand_problem(const AluOperand& wanted) const {
  const Operand* operand = &instruction_.operands[wanted.index];
  if (wanted.element >= 0) operand = &operand->elements[static_cast<size_t>(wanted.element)];
  std::string where = fmt::format("operand {}", wanted.index + 1);
  if (operand->kind == Operand::Kind::kSink && wanted.is_destination) return std::nullopt;
  if (operand->kind == Operand::Kind::kImmediate && !wanted.is_destination) return std::nullopt;
  if (operand->kind != Operand::Kind::kRegister) {
    return fmt::format("{} must be a register{}", where,
                       wanted.is_destination ? "" : " or a constant");
  }
  const ptx::Register& reg = function_.registers[static_cast<size_t>(operand->reg)];
  bool is_predicate = reg.type == Type::kPred;
  if (is_predicate != (wanted.type == Type::kPred) ||
      ptx::bytes_of(reg.type) != ptx::bytes_of(wanted.type)) {
    return fmt::format("{}, {}, is declared .{} but .{} is expected", where, reg.name,
                       ptx::name_of(reg.type), ptx::name_of(wanted.type));
  }
  return std::nullopt;
}

Result<AluSpec> AluQuery::finish(AluSpec spec, size_t expected) const {
  if (!next().empty() || spec.fn == nullptr) return refuse_modifiers();
  if (instruction_.operands.size() != expected) {
    return refuse(
        fmt::format("{} operands where {} are expected", instruction_.operands.size(), expected));
  }
  for (const AluOperand& operand : spec.operands()) {
    if (auto problem = operand_problem(operand)) return refuse(*problem);
  }
  return spec;
}

Result<AluSpec> AluQuery::finish(AluSpec spec, std::initializer_list<Type> types) const {
  constexpr AluPlace kPlaces[] = {AluPlace::kD, AluPlace::kA, AluPlace::kB, AluPlace::kC};
  CB_CHECK(types.size() <= std::size(kPlaces), "a spec with more than three sources");
  size_t index = 0;
  for (Type type : types) {
    add_operand(spec, index, kPlaces[index], type, index == 0);
    ++index;
  }
  return finish(std::move(spec), types.size());
}

void add_operand(AluSpec& spec, size_t index, AluPlace place, Type type, bool is_destination,
                 int element) {
  CB_CHECK(spec.num_operands < spec.operand_list.size(), "too many operands in a spec");
  spec.operand_list[spec.num_operands++] = {
      static_cast<uint8_t>(index), static_cast<int8_t>(element), place, type, is_destination};
}

}  // namespace cb::sim
