#include <fmt/format.h>

#include <string>

#include "simulator/ptx/parser_function.h"
#include "simulator/ptx/special_registers.h"

namespace cb::ptx {
namespace {

// Instructions and their operands. Opcodes are not checked, but three of them name labels or
// functions and so have a syntax of their own: bra, brx.idx and call. Nothing here recurses:
// braces, parentheses and `|` hold plain operands only.

Operand::Symbol symbol_of(Binding::Kind kind) {
  switch (kind) {
    case Binding::Kind::kModuleVariable:
      return Operand::Symbol::kModuleVariable;
    case Binding::Kind::kFunctionVariable:
      return Operand::Symbol::kFunctionVariable;
    case Binding::Kind::kParameter:
      return Operand::Symbol::kParameter;
    case Binding::Kind::kReturnValue:
      return Operand::Symbol::kReturnValue;
    case Binding::Kind::kFunction:
      return Operand::Symbol::kFunction;
    case Binding::Kind::kRegister:
      break;
  }
  return Operand::Symbol::kNone;
}

}  // namespace

bool BodyParser::guarded_instruction() {
  Instruction guarded;
  cursor_.advance();
  guarded.guard_negated = cursor_.accept('!');
  std::string_view name;
  if (!cursor_.identifier(name, "the predicate of a guard")) return false;
  if (!predicate(name, guarded.guard)) return false;
  uint32_t line = cursor_.token().line;
  if (!cursor_.identifier(name, "an instruction after a guard")) return false;
  return instruction(name, line, std::move(guarded));
}

bool BodyParser::instruction(std::string_view opcode, uint32_t line, Instruction instruction) {
  if (++context_.instructions > context_.limits.instructions) {
    return cursor_.fail(
        fmt::format("the module has more than {} instructions", context_.limits.instructions));
  }
  instruction.opcode = opcode;
  instruction.text_line = line;
  instruction.location = location_;
  while (cursor_.is(TokenKind::kWord)) {
    instruction.modifiers.emplace_back(cursor_.token().text.substr(1));
    cursor_.advance();
  }
  has_selectors_ = opcode.starts_with('v') && opcode != "vote";
  has_vector_specials_ = opcode == "mov" && instruction.has("v4");
  bool ok;
  if (opcode == "call") {
    ok = call(instruction);
  } else if (opcode == "bra") {
    ok = label_reference(Labels::Kind::kInstruction, instruction);
  } else if (opcode == "brx") {
    ok = branch(instruction);
  } else {
    ok = cursor_.is(';') || operands(instruction);
  }
  if (!ok || !cursor_.expect(';', "an instruction")) return false;
  function_.body.push_back(std::move(instruction));
  return true;
}

bool BodyParser::operands(Instruction& instruction) {
  do {
    if (!append(instruction.operands) || !operand(instruction.operands.back())) return false;
  } while (cursor_.accept(','));
  return true;
}

bool BodyParser::branch(Instruction& instruction) {
  return append(instruction.operands) && operand(instruction.operands.back()) &&
         cursor_.expect(',', "the index of brx") &&
         label_reference(Labels::Kind::kTable, instruction);
}

bool BodyParser::label_reference(Labels::Kind kind, Instruction& instruction) {
  uint32_t line = cursor_.token().line;
  std::string_view name;
  if (!cursor_.identifier(name, "a label") || !append(instruction.operands)) return false;
  Operand& operand = instruction.operands.back();
  operand.name = name;
  switch (kind) {
    case Labels::Kind::kInstruction:
      operand.kind = Operand::Kind::kLabel;
      break;
    case Labels::Kind::kTable:
      operand.kind = Operand::Kind::kBranchTable;
      break;
    case Labels::Kind::kPrototype:
      operand.kind = Operand::Kind::kVariable;
      operand.symbol = Operand::Symbol::kPrototype;
      break;
  }
  context_.labels.refer(name, kind, static_cast<uint32_t>(function_.body.size()),
                        static_cast<uint32_t>(instruction.operands.size() - 1), line);
  return true;
}

// call{.uni} (returns), callee, (arguments), prototype; all but the callee may be absent.
bool BodyParser::call(Instruction& instruction) {
  std::vector<Operand>& operands = instruction.operands;
  operands.reserve(4);
  if (!append(operands)) return false;
  operands.back().kind = Operand::Kind::kList;
  if (cursor_.accept('(') && (!elements(')', "the return values", operands.back().elements) ||
                              !cursor_.expect(',', "the return values"))) {
    return false;
  }
  if (!callee(instruction) || !append(operands)) return false;
  operands.back().kind = Operand::Kind::kList;
  bool has_more = cursor_.accept(',');
  if (has_more && cursor_.accept('(')) {
    if (!elements(')', "the arguments", operands.back().elements)) return false;
    has_more = cursor_.accept(',');
  }
  bool is_indirect = operands[1].kind == Operand::Kind::kRegister;
  if (has_more != is_indirect) {
    return cursor_.fail(is_indirect ? "an indirect call needs a .callprototype as its last operand"
                                    : "a direct call has no .callprototype");
  }
  return !is_indirect || label_reference(Labels::Kind::kPrototype, instruction);
}

bool BodyParser::callee(Instruction& instruction) {
  uint32_t line = cursor_.token().line;
  std::string_view name;
  if (!cursor_.identifier(name, "the function to call")) return false;
  if (!append(instruction.operands)) return false;
  Operand& target = instruction.operands.back();
  if (!resolve(name, target)) {
    return cursor_.fail_at(line, fmt::format("call of {}, which no .func declares", quoted(name)));
  }
  if (target.kind != Operand::Kind::kRegister && target.symbol != Operand::Symbol::kFunction) {
    return cursor_.fail_at(line, fmt::format("call of {}, which is a variable", quoted(name)));
  }
  return true;
}

bool BodyParser::append(std::vector<Operand>& operands) {
  if (++context_.operands > context_.limits.operands) {
    return cursor_.fail(
        fmt::format("the module has more than {} operands", context_.limits.operands));
  }
  operands.emplace_back();
  return true;
}

bool BodyParser::operand(Operand& operand) {
  if (cursor_.accept('[')) return memory(operand);
  if (cursor_.accept('{')) {
    operand.kind = Operand::Kind::kVector;
    return elements('}', "the elements of a vector", operand.elements);
  }
  if (cursor_.accept('!')) return negated(operand);
  return element(operand) && pair(operand);
}

bool BodyParser::elements(char closing, std::string_view what, std::vector<Operand>& elements) {
  if (cursor_.accept(closing)) return true;
  do {
    if (!append(elements) || !element(elements.back())) return false;
  } while (cursor_.accept(','));
  return cursor_.expect(closing, what);
}

bool BodyParser::element(Operand& operand) {
  // Video instructions negate sources: `-a`.
  if (has_selectors_ && cursor_.is('-')) return negative(operand);
  if (begins_constant(cursor_)) return immediate(operand);
  return named(operand);
}

bool BodyParser::immediate(Operand& operand) {
  Constant constant;
  if (!parse_constant(cursor_, context_.limits.nesting, constant)) return false;
  operand.kind = Operand::Kind::kImmediate;
  operand.bits = constant.bits;
  operand.is_float = constant.is_float;
  operand.is_double = constant.is_float && !constant.is_single;
  return true;
}

bool BodyParser::negative(Operand& operand) {
  cursor_.advance();
  if (begins_constant(cursor_)) {
    if (!immediate(operand)) return false;
    if (operand.is_float) return cursor_.fail("a negated floating-point constant");
    operand.bits = -operand.bits;
    return true;
  }
  if (!named(operand)) return false;
  if (operand.kind != Operand::Kind::kRegister) {
    return cursor_.fail("expected a register or a constant after \"-\"");
  }
  operand.negated = true;
  return true;
}

// False if nothing has the name; that is no error yet.
bool BodyParser::resolve(std::string_view name, Operand& operand) {
  std::optional<Binding> binding = context_.symbols.find(name, function_.registers);
  if (!binding) return false;
  if (binding->kind == Binding::Kind::kRegister) {
    operand.kind = Operand::Kind::kRegister;
    operand.reg = binding->index;
  } else {
    operand.kind = Operand::Kind::kVariable;
    operand.symbol = symbol_of(binding->kind);
    operand.symbol_index = binding->index;
    operand.name = name;
  }
  return true;
}

bool BodyParser::named(Operand& operand) {
  uint32_t line = cursor_.token().line;
  std::string_view name;
  if (!cursor_.identifier(name, "an operand")) return false;
  if (name == "_") {
    operand.kind = Operand::Kind::kSink;
    return true;
  }
  bool is_known = resolve(name, operand);
  if (is_known && operand.kind == Operand::Kind::kVariable) return offset(operand);
  if (!is_known && name[0] == '%') return special(name, operand);
  if (!is_known) {
    return cursor_.fail_at(
        line, fmt::format("unknown name {}: no register, variable or function of that name is "
                          "declared here",
                          quoted(name)));
  }
  if (cursor_.is(TokenKind::kWord)) {
    if (has_selectors_) {
      operand.name = cursor_.token().text.substr(1);
      cursor_.advance();
      return within_register_limit();
    }
    return cursor_.fail(fmt::format("selector {} of register {} is not supported",
                                    quoted(cursor_.token().text), quoted(name)));
  }
  return within_register_limit();
}

bool BodyParser::special(std::string_view name, Operand& operand) {
  const SpecialRegister* found = find_special_register(name);
  if (found == nullptr) {
    return cursor_.fail(
        fmt::format("unknown register {}: no .reg declares it, and PTX 9.0 has no "
                    "special register of that name",
                    quoted(name)));
  }
  operand.kind = Operand::Kind::kSpecial;
  operand.name = name;
  if (!found->is_vector) return !cursor_.error();
  std::string_view word = cursor_.token().text;
  if (word != ".x" && word != ".y" && word != ".z" && word != ".w") {
    if (has_vector_specials_) return !cursor_.error();
    return cursor_.unexpected(fmt::format(".x, .y, .z or .w after {}", name));
  }
  operand.name += word;
  cursor_.advance();
  return true;
}

// `p|q`: the first of the two is in `operand`.
bool BodyParser::pair(Operand& operand) {
  auto can_pair = [](const Operand& one) {
    return one.kind == Operand::Kind::kRegister || one.kind == Operand::Kind::kSink;
  };
  if (!can_pair(operand) || !cursor_.accept('|')) return !cursor_.error();
  Operand both;
  both.kind = Operand::Kind::kPair;
  both.elements.reserve(2);
  both.elements.push_back(std::move(operand));
  if (!append(both.elements) || !element(both.elements.back())) return false;
  if (!can_pair(both.elements.back())) {
    return cursor_.fail("expected a register or \"_\" after \"|\"");
  }
  operand = std::move(both);
  return true;
}

bool BodyParser::negated(Operand& operand) {
  std::string_view name;
  if (!cursor_.identifier(name, "a predicate after \"!\"")) return false;
  operand.kind = Operand::Kind::kRegister;
  operand.negated = true;
  return predicate(name, operand.reg);
}

bool BodyParser::predicate(std::string_view name, int32_t& reg) {
  std::optional<Binding> binding = context_.symbols.find(name, function_.registers);
  if (!binding || binding->kind != Binding::Kind::kRegister ||
      function_.registers[binding->index].type != Type::kPred) {
    return cursor_.fail(fmt::format("{} is not a register of type .pred", quoted(name)));
  }
  reg = binding->index;
  return true;
}

bool BodyParser::memory(Operand& operand) {
  if (!memory_base(operand)) return false;
  if (!cursor_.is(',')) return cursor_.expect(']', "an address");
  Operand coordinates;
  coordinates.kind = Operand::Kind::kCoordinates;
  coordinates.elements.push_back(std::move(operand));
  while (cursor_.accept(',')) {
    if (!append(coordinates.elements)) return false;
    Operand& last = coordinates.elements.back();
    if (cursor_.accept('{')) {
      last.kind = Operand::Kind::kVector;
      if (!elements('}', "the coordinates", last.elements)) return false;
    } else if (!element(last)) {
      return false;
    }
  }
  operand = std::move(coordinates);
  return cursor_.expect(']', "the coordinates");
}

bool BodyParser::memory_base(Operand& operand) {
  if (begins_constant(cursor_)) {
    if (!immediate(operand)) return false;
    if (operand.is_float) return cursor_.fail("a floating-point address");
    operand.offset = static_cast<int64_t>(operand.bits);
    operand.bits = 0;
  } else {
    uint32_t line = cursor_.token().line;
    std::string_view name;
    if (!cursor_.identifier(name, "an address")) return false;
    if (!resolve(name, operand)) {
      return cursor_.fail_at(line, fmt::format("unknown name {} in an address", quoted(name)));
    }
    if (!offset(operand)) return false;
  }
  operand.kind = Operand::Kind::kMemory;
  return true;
}

// `+8`, `+-8` or `-8` is a constant expression that begins with its sign.
bool BodyParser::offset(Operand& operand) {
  if (!cursor_.is('+') && !cursor_.is('-')) return !cursor_.error();
  Constant constant;
  if (!parse_constant(cursor_, context_.limits.nesting, constant)) return false;
  if (constant.is_float) return cursor_.fail("a floating-point offset of an address");
  operand.offset = static_cast<int64_t>(constant.bits);
  return true;
}

}  // namespace cb::ptx
