#pragma once

// The contract between decoding and the handlers that are not arithmetic: memory, warp-wide and
// control operations. It extends alu.h: the decoder places operands as the spec lists them.

#include <optional>
#include <vector>

#include "simulator/exec/alu.h"

namespace cb::sim {

/// Where an operand of an operation goes, beyond what AluPlace says.
struct OpOperand {
  enum class Kind : uint8_t {
    kPlain,  ///< `place` says where: a register, or an immediate as a constant's slot
    /// A memory operand [base + offset]: the slot of base goes to `place`, the offset to
    /// MicroOp::immediate. A variable as base is a constant's slot of 8 bytes: its address in the
    /// space of the instruction (shared and local: offsets). No base: a constant 0.
    kAddress,
    /// Appended to the operand list (FunctionCode::lists) in the order of the spec.
    kList,
    /// A memory operand, appended to the list as two entries: the slot of base, and a constant's
    /// slot with the offset.
    kListedAddress,
  };
  Kind kind = Kind::kPlain;
  AluOperand plain;  ///< index, element, place, type, is_destination
};

/// How one instruction is executed.
struct OpSpec {
  OpFn fn = nullptr;
  uint8_t aux = 0;
  uint64_t immediate = 0;  ///< an address operand adds its offset to it
  uint16_t flags = 0;      ///< OpFlag
  std::vector<OpOperand> operands;
  bool reads_carry = false;
  bool writes_carry = false;
  bool has_site = false;  ///< MicroOp::target becomes the index of an access site of its own
  AluSpec::Class latency_class = AluSpec::Class::kSimple;
};

/// An element of an operand, as AluOperand counts them; of kCoordinates the address comes first,
/// then the coordinates. nullptr: there is none.
const ptx::Operand* element_of(const ptx::Operand& operand, int element);

/// What an instruction means beyond its own text.
struct OpContext {
  const ptx::Module* module = nullptr;
  const ptx::Function* function = nullptr;
};

/// Loads, stores, atomics, reductions, multimem, cvta, isspacep, prefetch, fences
/// (memory_ops.cc and its neighbours). An Error(kConfig) "ptx:LINE: OPCODE: ..." names what is not
/// supported; nullopt: not of this family. A .param access whose base is a parameter of an entry
/// function or a register reads the launch's parameters; any other .param access is one to the
/// frame's own memory, addressed like .local.
std::optional<Result<OpSpec>> find_memory_op(const ptx::Instruction& instruction,
                                             const OpContext& context);

/// shfl, vote, match, redux, activemask, elect, bar, barrier, nanosleep, griddepcontrol, and mov
/// from the special registers that change: clocks and timers.
std::optional<Result<OpSpec>> find_warp_op(const ptx::Instruction& instruction,
                                           const OpContext& context);

/// Handlers that the decoder places itself, because their operands are code. The guard of a
/// branch is its condition.
struct ControlOps {
  OpFn branch;        ///< to `target`. immediate: 1 + spin loop index for back edges, 0 for others;
                      ///< aux bit 0: a back edge (target at or before the branch)
  OpFn branch_index;  ///< brx.idx: slot a is the index, `list`: first entry of
                      ///< FunctionCode::branch_targets, list_size of them
  OpFn call;          ///< FunctionCode::calls[target]
  OpFn call_register;  ///< the same, the callee is the function handle in slot a
  OpFn call_vprintf;   ///< the same, the callee is vprintf
  OpFn call_assertfail;
  OpFn return_;
  OpFn exit;
  OpFn trap;
  OpFn nop;  ///< pragma-like instructions: brkpt, pmevent, membar.proxy on plain memory, ...
  OpFn move_vector;  ///< the list's first three from slots a, b and c, the fourth 0
};
const ControlOps& control_ops();

}  // namespace cb::sim
