#pragma once

// The contract between decoding and the arithmetic handlers. `find_alu` looks at a parsed
// instruction and says which handler executes it and where the handler expects each operand; the
// decoder assigns slots and follows the list, without knowing opcodes.

#include <array>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "simulator/exec/micro_op.h"
#include "simulator/ptx/module.h"

namespace cb::sim {

/// Predicates of every frame that no register is assigned to.
inline constexpr uint16_t kCarryPredicate = 0;  ///< CC.CF of add.cc and the like, one bit per lane
inline constexpr uint16_t kFalsePredicate = 1;  ///< always 0: stands for immediate predicates
inline constexpr uint16_t kFirstPredicate = 2;
/// The slot or predicate index of a destination that is not wanted, written `_`.
inline constexpr uint16_t kNoSlot = 0xffff;

/// Where in a MicroOp an operand goes. For predicates only the index of a Slot is used.
enum class AluPlace : uint8_t {
  kD,
  kA,
  kB,
  kC,
  kExtra,      ///< a fifth slot, in bits 0 to 31 of `immediate`
  kPair,       ///< a second destination predicate, in bits 16 to 31 of `immediate`
  kCondition,  ///< a source predicate, in bits 32 to 47 of `immediate`, bit 48 when negated
};

/// One register operand of an instruction.
struct AluOperand {
  uint8_t index = 0;    ///< into Instruction::operands
  int8_t element = -1;  ///< of a kVector or kPair operand; -1: the operand is not a list
  AluPlace place = AluPlace::kD;
  /// kPred: a predicate. Else the slot has the width of this type; a register of another width is
  /// an error in the PTX. An immediate is converted with `immediate_bits`.
  ptx::Type type = ptx::Type::kNone;
  bool is_destination = false;
};

/// Bits of MicroOp::aux that say that the predicate source in place kA or kB is written `!p`.
inline constexpr uint8_t kNegatedA = 0x40;
inline constexpr uint8_t kNegatedB = 0x80;

/// How an arithmetic, logic, conversion or move instruction is executed.
struct AluSpec {
  OpFn fn = nullptr;
  uint8_t aux = 0;         ///< initial MicroOp::aux
  uint64_t immediate = 0;  ///< initial MicroOp::immediate
  /// All register operands; operands that are missing here (such as lop3's table) are constants
  /// that the handler already knows.
  std::array<AluOperand, 6> operand_list = {};
  uint8_t num_operands = 0;
  bool reads_carry = false;   ///< kCarryPredicate is a source
  bool writes_carry = false;  ///< kCarryPredicate is a destination
  /// Cycles from issue until a dependent instruction can issue (Hopper: 4 for the common integer
  /// and fp32 pipes; see profiles for the classes), and issue slots taken on a scheduler.
  enum class Class : uint8_t { kSimple, kMultiply, kHalfRate, kDouble, kSpecialFunction, kConvert };
  Class latency_class = Class::kSimple;

  std::span<const AluOperand> operands() const { return {operand_list.data(), num_operands}; }
};

/// The handler of an instruction of the ALU families; an Error(kConfig) names the opcode with the
/// modifier that is not supported. nullopt: not an instruction of these families, which includes
/// `mov` from special registers and from addresses. `function` gives the widths of registers.
std::optional<Result<AluSpec>> find_alu(const ptx::Instruction& instruction,
                                        const ptx::Function& function);

/// Puts an operand's slot (or predicate index, with `negated` for `!p`) where the handler reads it.
/// `op` starts with the spec's fn, aux and immediate.
void place_operand(MicroOp& op, const AluOperand& operand, Slot slot, bool negated = false);

/// The bits of an immediate (kImmediate) operand read as `type`: truncated, or for floats rounded
/// to nearest, and zero-extended. For kPred: 0 or 1.
uint64_t immediate_bits(const ptx::Operand& operand, ptx::Type type);

/// The opcodes `find_alu` knows, for the coverage table.
std::vector<std::string_view> alu_opcodes();

}  // namespace cb::sim
