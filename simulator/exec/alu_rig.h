#pragma once

// For tests and benchmarks of the arithmetic handlers: one PTX instruction, decoded as the contract
// in alu.h says, and a frame of registers to run it on.

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "simulator/exec/alu.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {

/// A register's 32 lanes; those of predicates are 0 or 1, the second array is for .b128.
struct LaneValues {
  std::array<uint64_t, kLanes> low = {};
  std::array<uint64_t, kLanes> high = {};
};

class AluRig {
 public:
  /// The instruction may use %p, %b, %h, %r, %f, %rd, %fd and %q with 0 to 7: predicates and
  /// registers of type .b8, .b16, .b32, .f32, .b64, .f64 and .b128.
  explicit AluRig(const std::string& instruction);

  /// What find_alu says of it; nullopt as there.
  const std::optional<Result<AluSpec>>& answer() const { return answer_; }
  const AluSpec& spec() const { return **answer_; }

  /// An operand of the spec's list, with the register that the instruction has there.
  struct Operand {
    AluOperand place;
    int32_t reg = -1;  ///< -1: a constant, or the sink `_`
    uint64_t constant = 0;
    bool negated = false;
    bool is_sink = false;
  };
  const std::vector<Operand>& operands() const { return operands_; }
  const Meta& meta(int32_t reg) const { return meta_[static_cast<size_t>(reg)]; }
  /// Makes an operand another register, of the same type.
  void set_register(size_t operand, int32_t reg);

  /// Sets a register, as a vector or as base + lane * stride.
  void set_vector(int32_t reg, const LaneValues& values);
  void set_affine(int32_t reg, uint64_t base, int32_t stride);
  LaneValues get(int32_t reg) const;
  ptx::Type type_of(int32_t reg) const;
  size_t num_registers() const { return function_.registers.size(); }

  uint32_t& carry() { return predicates_[kCarryPredicate]; }
  Context& context() { return context_; }

  void run() { op_.fn(context_, &op_); }
  const MicroOp& op() const { return op_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static constexpr uint16_t kLinesPerRegister = 8;

  void assemble();
  Slot slot_of(int32_t reg) const;
  template <typename T>
  T* lanes_of(int32_t reg) const;

  ptx::Function function_;
  ptx::Instruction instruction_;
  std::optional<Result<AluSpec>> answer_;
  std::vector<Operand> operands_;
  std::vector<Meta> meta_;
  std::unique_ptr<Line[]> vectors_;
  std::vector<uint32_t> predicates_;
  Context context_;
  MicroOp op_;
};

}  // namespace cb::sim
