#pragma once

// What find_memory_op and find_warp_op share: taking modifiers, as AluQuery does, and building the
// operand list of an OpSpec.

#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/op_spec.h"

namespace cb::sim {

class OpQuery : public AluQuery {
 public:
  OpQuery(const ptx::Instruction& instruction, const OpContext& context)
      : AluQuery(instruction, *context.function), function_(*context.function) {}

  const ptx::Function& function() const { return function_; }
  size_t num_operands() const { return instruction().operands.size(); }
  const ptx::Operand& operand(size_t index) const { return instruction().operands[index]; }
  /// Whether operand `index` exists and is of that kind.
  bool is(size_t index, ptx::Operand::Kind kind) const {
    return index < num_operands() && operand(index).kind == kind;
  }
  /// The type of a register; kNone for constants and sinks.
  ptx::Type type_of(const ptx::Operand& operand) const;

  /// Takes the first of `modifiers` that the instruction has; -1 when it has none.
  int take_one(std::initializer_list<std::string_view> modifiers);

  /// Completes a spec: all modifiers are taken, there are `expected` operands in the text, and each
  /// one listed is of the right kind and width.
  Result<OpSpec> finish(OpSpec spec, size_t expected) const;

 private:
  std::optional<std::string> problem_of(const OpOperand& wanted) const;

  const ptx::Function& function_;
};

/// Adds operand `index`, or an element of it, in a place of the operation.
void add_plain(OpSpec& spec, size_t index, AluPlace place, ptx::Type type,
               bool is_destination = false, int element = -1);
/// Appends operand `index`, or an element of it, to the operation's list.
void add_listed(OpSpec& spec, size_t index, ptx::Type type, bool is_destination, int element = -1);
/// Adds the memory operand `index`, whose register goes to kA. Sets kNarrowAddress.
void add_address(const OpQuery& query, OpSpec& spec, size_t index);

/// A family's answer for one opcode, as AluEntry.
using OpFinder = std::optional<Result<OpSpec>> (*)(OpQuery& query);
struct OpEntry {
  std::string_view opcode;
  OpFinder find;
};
std::span<const OpEntry> load_entries();
std::span<const OpEntry> store_entries();
std::span<const OpEntry> atomic_entries();
std::span<const OpEntry> multimem_entries();
std::span<const OpEntry> address_entries();
std::span<const OpEntry> fence_entries();
std::span<const OpEntry> exchange_entries();
std::span<const OpEntry> barrier_entries();
std::span<const OpEntry> clock_entries();
std::span<const OpEntry> cluster_address_entries();
std::span<const OpEntry> cluster_entries();
std::span<const OpEntry> stack_entries();
std::span<const OpEntry> mbarrier_entries();
std::span<const OpEntry> async_entries();
std::span<const OpEntry> bulk_entries();
std::span<const OpEntry> tensor_entries();
std::span<const OpEntry> tensor_map_entries();

/// The type of the same width as a register of `bytes` bytes: `type` itself, or plain bits.
ptx::Type register_type_for(ptx::Type type, unsigned bytes);

/// Asks the entries of `families` in order; nullopt when none has the opcode.
std::optional<Result<OpSpec>> find_in(std::span<const std::span<const OpEntry>> families,
                                      const ptx::Instruction& instruction,
                                      const OpContext& context);

}  // namespace cb::sim
