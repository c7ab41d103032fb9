#pragma once

// Between the syntax tree and operations: instructions with their handlers chosen, on registers
// that have no slots yet.

#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "simulator/exec/code.h"
#include "simulator/exec/op_spec.h"

namespace cb::sim {

/// What an operand is.
struct Ref {
  enum class Kind : uint8_t {
    kNone,      ///< a sink, or no operand
    kRegister,  ///< index into ptx::Function::registers
    kPreset,    ///< index into FunctionIr::presets
    kFalse,     ///< the predicate that is always false; `negated`: true
  };
  Kind kind = Kind::kNone;
  bool negated = false;
  uint32_t index = 0;
};

struct PlacedRef {
  OpOperand operand;
  Ref ref;
};

/// One instruction.
struct IrOp {
  OpFn fn = nullptr;
  uint8_t aux = 0;
  uint64_t immediate = 0;
  uint16_t flags = 0;
  AluSpec::Class latency_class = AluSpec::Class::kSimple;
  int32_t guard = -1;  ///< register
  bool guard_negated = false;
  bool reads_carry = false;
  bool writes_carry = false;
  bool has_site = false;
  bool is_free_load = false;  ///< of memory that nothing writes: parameters, constants
  bool ends_block = false;    ///< control may go elsewhere
  bool falls_through = true;  ///< control may go on to the next instruction
  bool is_branch = false;
  int32_t branch_target = -1;  ///< index of an instruction; body.size() is the end
  int32_t branch_table = -1;   ///< index into ptx::Function::branch_tables
  int32_t call = -1;           ///< index into FunctionIr::calls
  uint32_t instruction = 0;
  std::vector<PlacedRef> operands;
};

struct FunctionIr {
  const ptx::Function* function = nullptr;
  std::vector<IrOp> ops;        ///< one for each instruction, and an end
  std::vector<Preset> presets;  ///< without slots
  std::vector<CallSite> calls;  ///< `function` is an index into Module::functions
  uint32_t local_bytes = 0;
  std::vector<uint32_t> parameter_offsets;
  std::vector<uint32_t> result_offsets;
  std::vector<uint32_t> variable_offsets;  ///< of Function::variables in local memory
};

/// Calls `visit(register, is_destination)` for each register that an operation names, its guard
/// included.
template <typename Visit>
void for_each_register(const IrOp& op, Visit&& visit) {
  if (op.guard >= 0) visit(static_cast<uint32_t>(op.guard), false);
  for (const PlacedRef& placed : op.operands) {
    if (placed.ref.kind == Ref::Kind::kRegister) {
      visit(placed.ref.index, placed.operand.plain.is_destination);
    }
  }
}

}  // namespace cb::sim
