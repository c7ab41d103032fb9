// Follows the contract of alu.h as a decoder does: registers get slots in the order of the
// function, with room for eight lines of vector each, constants get slots of their own after them,
// and each operand of the spec's list goes where it says.

#include "simulator/exec/alu_rig.h"

#include <fmt/format.h>

#include "base/check.h"

namespace cb::sim {

using ptx::Type;

AluRig::AluRig(const std::string& instruction) {
  std::string text = fmt::format(R"(.version 9.0
.target sm_90a
.address_size 64
.visible .entry k()
{{
  .reg .pred %p<8>;
  .reg .b8 %b<8>;
  .reg .b16 %h<8>;
  .reg .b32 %r<8>;
  .reg .f32 %f<8>;
  .reg .b64 %rd<8>;
  .reg .f64 %fd<8>;
  .reg .b128 %q<8>;
  {}
}}
)",
                                 instruction);
  ptx::Module module = value_or_throw(ptx::parse(text));
  function_ = module.functions.at(0);
  instruction_ = function_.body.at(0);
  answer_ = find_alu(instruction_, function_);
  size_t registers = function_.registers.size();
  meta_.resize(registers);
  vectors_ = std::make_unique<Line[]>(registers * kLinesPerRegister);
  predicates_.resize(kFirstPredicate + registers);
  context_.meta = meta_.data();
  context_.vectors = vectors_[0].bytes;
  context_.predicates = predicates_.data();
  context_.mask = kAllLanes;
  context_.full = true;
  if (!answer_ || !*answer_) return;
  for (const AluOperand& place : spec().operands()) {
    const ptx::Operand* operand = &instruction_.operands[place.index];
    if (place.element >= 0) operand = &operand->elements[static_cast<size_t>(place.element)];
    Operand found{.place = place, .negated = operand->negated};
    if (operand->kind == ptx::Operand::Kind::kRegister) found.reg = operand->reg;
    if (operand->kind == ptx::Operand::Kind::kImmediate) {
      found.constant = immediate_bits(*operand, place.type);
    }
    found.is_sink = operand->kind == ptx::Operand::Kind::kSink;
    operands_.push_back(found);
  }
  assemble();
}

void AluRig::set_register(size_t operand, int32_t reg) {
  operands_[operand].reg = reg;
  assemble();
}

Slot AluRig::slot_of(int32_t reg) const {
  auto index = static_cast<uint16_t>(reg);
  if (function_.registers[index].type == Type::kPred) {
    return {static_cast<uint16_t>(kFirstPredicate + index), 0};
  }
  return {index, static_cast<uint16_t>(index * kLinesPerRegister)};
}

void AluRig::assemble() {
  op_ = MicroOp{.fn = spec().fn, .immediate = spec().immediate, .aux = spec().aux};
  // Constants get slots of their own, after the registers'.
  meta_.resize(function_.registers.size());
  for (const Operand& operand : operands_) {
    Slot slot{kNoSlot, 0};
    bool negated = operand.negated;
    if (operand.reg >= 0) {
      slot = slot_of(operand.reg);
    } else if (!operand.is_sink && operand.place.type == Type::kPred) {
      slot = {kFalsePredicate, 0};
      negated ^= operand.constant != 0;
    } else if (!operand.is_sink) {
      slot = {static_cast<uint16_t>(meta_.size()), 0};
      meta_.push_back({operand.constant, 0, 0});
    }
    place_operand(op_, operand.place, slot, negated);
  }
  context_.meta = meta_.data();
}

ptx::Type AluRig::type_of(int32_t reg) const {
  return function_.registers[static_cast<size_t>(reg)].type;
}

template <typename T>
T* AluRig::lanes_of(int32_t reg) const {
  return reinterpret_cast<T*>(vectors_[static_cast<size_t>(reg) * kLinesPerRegister].bytes);
}

void AluRig::set_vector(int32_t reg, const LaneValues& values) {
  unsigned bytes = ptx::bytes_of(type_of(reg));
  if (bytes == 0) {
    uint32_t& bits = predicates_[slot_of(reg).index];
    bits = 0;
    for (size_t i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(values.low[i] & 1) << i;
    return;
  }
  meta_[static_cast<size_t>(reg)] = {0x5555, 7, 1};
  std::byte* lanes = lanes_of<std::byte>(reg);
  for (size_t i = 0; i < kLanes; ++i) {
    std::memcpy(lanes + i * bytes, &values.low[i], std::min(bytes, 8u));
    if (bytes == 16) std::memcpy(lanes + i * bytes + 8, &values.high[i], 8);
  }
}

void AluRig::set_affine(int32_t reg, uint64_t base, int32_t stride) {
  Meta& meta = meta_[static_cast<size_t>(reg)];
  meta = {base, stride, 0};
  // A handler must not look at the vector of a slot that is not one.
  std::memset(lanes_of<std::byte>(reg), 0xa5, sizeof(Line) * kLinesPerRegister);
}

LaneValues AluRig::get(int32_t reg) const {
  LaneValues values;
  unsigned bytes = ptx::bytes_of(type_of(reg));
  if (bytes == 0) {
    uint32_t bits = predicates_[slot_of(reg).index];
    for (size_t i = 0; i < kLanes; ++i) values.low[i] = bits >> i & 1;
    return values;
  }
  const Meta& meta = meta_[static_cast<size_t>(reg)];
  const std::byte* lanes = lanes_of<std::byte>(reg);
  for (size_t i = 0; i < kLanes; ++i) {
    if (meta.is_vector) {
      std::memcpy(&values.low[i], lanes + i * bytes, std::min(bytes, 8u));
      if (bytes == 16) std::memcpy(&values.high[i], lanes + i * bytes + 8, 8);
    } else {
      uint64_t mask = bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
      auto offset = static_cast<uint64_t>(static_cast<int64_t>(meta.stride)) * i;
      values.low[i] = (meta.base + offset) & mask;
      CB_CHECK(meta.base == (meta.base & mask), "a base must be zero-extended");
    }
  }
  return values;
}

}  // namespace cb::sim
