#pragma once

#include <string_view>

#include "simulator/ptx/constant.h"
#include "simulator/ptx/parser_context.h"
#include "simulator/ptx/parser_declaration.h"

namespace cb::ptx {

/// Parses a function after `.entry` or `.func`: header, directives and body or semicolon. Adds it
/// to the module, or completes the one declared earlier.
bool parse_function(ParserContext& context, const Linkage& linkage, bool is_entry);

/// Parses the body of one function.
class BodyParser {
 public:
  BodyParser(ParserContext& context, Function& function)
      : context_(context), cursor_(context.cursor), function_(function) {}

  /// After the opening brace, up to and with the closing one.
  bool parse();

 private:
  bool statement();
  bool directive();
  bool registers();
  bool within_register_limit();
  bool label(std::string_view name, uint32_t line);
  bool branch_table(std::string_view name, uint32_t line);
  bool prototype(std::string_view name, uint32_t line);
  bool call_targets(std::string_view name, uint32_t line);
  bool define_prototype(std::string_view name, uint32_t line, Function::Prototype prototype);

  // parser_instruction.cc
  bool guarded_instruction();
  bool instruction(std::string_view opcode, uint32_t line, Instruction instruction);
  bool branch(Instruction& instruction);
  bool call(Instruction& instruction);
  bool callee(Instruction& instruction);
  bool operands(Instruction& instruction);
  bool operand(Operand& operand);
  bool element(Operand& operand);
  bool elements(char closing, std::string_view what, std::vector<Operand>& elements);
  bool named(Operand& operand);
  bool special(std::string_view name, Operand& operand);
  bool pair(Operand& operand);
  bool negated(Operand& operand);
  bool immediate(Operand& operand);
  bool negative(Operand& operand);
  bool memory(Operand& operand);
  bool memory_base(Operand& operand);
  bool offset(Operand& operand);
  bool label_reference(Labels::Kind kind, Instruction& instruction);
  bool append(std::vector<Operand>& operands);
  bool resolve(std::string_view name, Operand& operand);
  bool predicate(std::string_view name, int32_t& reg);

  ParserContext& context_;
  Cursor& cursor_;
  Function& function_;
  int32_t location_ = -1;
  bool has_selectors_ = false;        ///< the instruction may have parts of registers as operands
  bool has_vector_specials_ = false;  ///< and this one, %tid without .x
};

}  // namespace cb::ptx
