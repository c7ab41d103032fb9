#pragma once

#include <array>
#include <optional>
#include <string_view>

#include "base/error.h"
#include "simulator/exec/micro_op.h"
#include "simulator/ptx/module.h"

namespace cb::sim {

/// How an arithmetic, logic, conversion or move instruction is executed. The decoder reads the
/// operands accordingly: it looks at the type for the width of an immediate and to tell registers
/// from predicates, and checks that each register is as wide as its type says.
struct AluSpec {
  OpFn fn = nullptr;
  ptx::Type d = ptx::Type::kNone;      ///< kPred: a predicate destination
  ptx::Type a = ptx::Type::kNone;      ///< kNone: no such operand
  ptx::Type b = ptx::Type::kNone;
  ptx::Type c = ptx::Type::kNone;
  /// Value for MicroOp::aux (comparison variant, rounding, negated predicate, ...). Bit 7 is set by
  /// the decoder when predicate source `c` is written `!p`.
  uint8_t aux = 0;
  /// Value for MicroOp::immediate, for instance the lookup table of lop3.
  uint64_t immediate = 0;
  /// setp's second destination `q` (written from the complement) is MicroOp::b when b is unused,
  /// else the entry `list`[0].
  bool pair_destination = false;
  /// `mov.b64 {a,b}, x` and `mov.b64 x, {a,b}`: the vector operand's slots go to
  /// FunctionCode::lists, `vector_element` is the type of each.
  ptx::Type vector_element = ptx::Type::kNone;
  bool vector_is_destination = false;
  /// Cycles from issue until a dependent instruction can issue (Hopper: 4 for the common integer
  /// and fp32 pipes; see profiles for the classes), and issue slots taken on a scheduler.
  enum class Class : uint8_t { kSimple, kMultiply, kHalfRate, kDouble, kSpecialFunction, kConvert };
  Class latency_class = Class::kSimple;
};

/// The handler of an instruction of the ALU families; an Error(kConfig) names the opcode with the
/// modifier that is not supported. nullopt: not an opcode of these families.
std::optional<Result<AluSpec>> find_alu(const ptx::Instruction& instruction);

/// The opcodes `find_alu` knows, for the coverage table.
std::vector<std::string_view> alu_opcodes();

}  // namespace cb::sim
