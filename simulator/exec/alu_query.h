#pragma once

// What the families of find_alu share. A family takes the modifiers it understands one by one; what
// is left when it finishes is refused by name, so no modifier is ignored by accident.

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "simulator/exec/alu.h"
#include "simulator/exec/number_format.h"

namespace cb::sim {

/// An instruction being looked up.
class AluQuery {
 public:
  static constexpr size_t kMaxModifiers = 64;

  AluQuery(const ptx::Instruction& instruction, const ptx::Function& function)
      : instruction_(instruction), function_(function) {}

  const ptx::Instruction& instruction() const { return instruction_; }
  std::string_view opcode() const { return instruction_.opcode; }
  bool has(std::string_view modifier) const { return instruction_.has(modifier); }
  /// The last modifier that names a fundamental type: the type of the source, mostly.
  ptx::Type last_type() const;

  /// True, and the modifier counts as understood, if the instruction has it.
  bool take(std::string_view modifier);
  /// The first modifier that was not taken yet; empty when all are.
  std::string_view next() const;
  /// Takes the next modifier if it names a fundamental type; else kNone.
  ptx::Type take_type();
  /// Takes .rn, .rz, .rm or .rp.
  std::optional<Rounding> take_rounding();

  /// The type of a register operand; kNone for other operands and past the last.
  ptx::Type register_type(size_t index) const;

  /// An Error(kConfig) "ptx:LINE: OPCODE: <why>".
  tl::unexpected<Error> refuse(const std::string& why) const;
  /// The refusal of the next modifier, or of the whole combination when all are taken.
  tl::unexpected<Error> refuse_modifiers() const;

  /// Completes a spec whose operands are all listed: checks that all modifiers are taken, that
  /// there are `expected` operands, and that each is of the right kind and width.
  Result<AluSpec> finish(AluSpec spec, size_t expected) const;
  /// The same for a destination and up to three sources, in the order of the text.
  Result<AluSpec> finish(AluSpec spec, std::initializer_list<ptx::Type> types) const;

 private:
  std::optional<std::string> operand_problem(const AluOperand& operand) const;

  const ptx::Instruction& instruction_;
  const ptx::Function& function_;
  uint64_t taken_ = 0;
};

/// Adds an operand to the spec's list.
void add_operand(AluSpec& spec, size_t index, AluPlace place, ptx::Type type,
                 bool is_destination = false, int element = -1);

/// A family's answer for one opcode: nullopt when the types or operands belong to another family.
using AluFinder = std::optional<Result<AluSpec>> (*)(AluQuery& query);
struct AluEntry {
  std::string_view opcode;
  AluFinder find;
};

/// The opcodes of each family; an opcode may be in several, which are asked in this order.
std::span<const AluEntry> move_entries();
std::span<const AluEntry> predicate_entries();
std::span<const AluEntry> integer_entries();
std::span<const AluEntry> divide_entries();
std::span<const AluEntry> carry_entries();
std::span<const AluEntry> logic_entries();
std::span<const AluEntry> bit_entries();
std::span<const AluEntry> float_entries();
std::span<const AluEntry> float_function_entries();
std::span<const AluEntry> half_entries();
std::span<const AluEntry> compare_entries();
std::span<const AluEntry> select_entries();
std::span<const AluEntry> convert_integer_entries();
std::span<const AluEntry> convert_entries();
std::span<const AluEntry> convert_packed_entries();
std::span<const AluEntry> video_entries();
std::span<const AluEntry> video_simd_entries();

}  // namespace cb::sim
