#include "simulator/decode/emit.h"

#include <algorithm>
#include <unordered_map>

#include "simulator/decode/spin_loops.h"

namespace cb::sim {
namespace {

constexpr uint32_t kMaxStall = 1000;

uint32_t cycles_of(const StallModel& stalls, const IrOp& op) {
  if (op.is_branch) return stalls.branch;
  switch (op.latency_class) {
    case AluSpec::Class::kSimple:
      return stalls.alu;
    case AluSpec::Class::kMultiply:
      return stalls.multiply;
    case AluSpec::Class::kHalfRate:
      return stalls.half_rate;
    case AluSpec::Class::kDouble:
      return stalls.doubled;
    case AluSpec::Class::kSpecialFunction:
      return stalls.special;
    case AluSpec::Class::kConvert:
      return stalls.convert;
  }
  return stalls.alu;
}

class Emitter {
 public:
  Emitter(const FunctionIr& ir, const FlowGraph& graph, const Liveness& live, const SlotMap& slots,
          const StallModel& stalls, uint32_t first_site)
      : ir_(ir),
        graph_(graph),
        live_(live),
        slots_(slots),
        stalls_(stalls),
        first_site_(first_site),
        code_(std::make_unique<FunctionCode>()) {
    code_->source = ir.function;
    code_->num_slots = slots.num_slots;
    code_->vector_lines = slots.vector_lines;
    code_->num_predicates = slots.num_predicates;
    code_->local_bytes = ir.local_bytes;
    code_->parameter_offsets = ir.parameter_offsets;
    code_->result_offsets = ir.result_offsets;
    code_->calls = ir.calls;
  }

  std::unique_ptr<FunctionCode> run() {
    emit_presets();
    find_loaded_slots();
    for (const IrOp& op : ir_.ops) emit(op);
    for (const BasicBlock& block : graph_.blocks) set_stalls(block);
    find_spin_loops(ir_, graph_, live_, slots_, *code_);
    return std::move(code_);
  }

 private:
  void emit_presets() {
    for (size_t i = 0; i < ir_.presets.size(); ++i) {
      Preset preset = ir_.presets[i];
      preset.slot = slots_.presets[i].index;
      preset.vector = slots_.presets[i].vector;
      code_->presets.push_back(preset);
    }
  }

  bool is_predicate(uint32_t reg) const {
    return ir_.function->registers[reg].type == ptx::Type::kPred;
  }

  void find_loaded_slots() {
    loaded_.assign(slots_.num_slots, false);
    for (const IrOp& op : ir_.ops) {
      if ((op.flags & kOpLoad) == 0) continue;
      for_each_register(op, [&](uint32_t reg, bool is_destination) {
        if (is_destination && !is_predicate(reg)) loaded_[slots_.registers[reg].index] = true;
      });
    }
  }

  Slot slot_of(const Ref& ref) const {
    switch (ref.kind) {
      case Ref::Kind::kRegister:
        return slots_.registers[ref.index];
      case Ref::Kind::kPreset:
        return slots_.presets[ref.index];
      case Ref::Kind::kFalse:
        return {kFalsePredicate, 0};
      case Ref::Kind::kNone:
        break;
    }
    return {kNoSlot, 0};
  }

  void emit(const IrOp& op) {
    MicroOp made;
    made.fn = op.fn;
    made.aux = op.aux;
    made.immediate = op.immediate;
    made.flags = op.flags;
    made.d = made.a = made.b = made.c = {kNoSlot, 0};
    if (op.guard >= 0) {
      made.guard = static_cast<int16_t>(slots_.registers[static_cast<uint32_t>(op.guard)].index);
    }
    made.list = static_cast<uint32_t>(code_->lists.size());
    for (const PlacedRef& placed : op.operands) {
      Slot slot = slot_of(placed.ref);
      if (placed.operand.kind == OpOperand::Kind::kList) {
        code_->lists.push_back(slot);
      } else {
        place_operand(made, placed.operand.plain, slot, placed.ref.negated);
      }
    }
    made.list_size = static_cast<uint16_t>(code_->lists.size() - made.list);
    if (op.has_site) made.target = first_site_ + code_->num_sites++;
    if (op.call >= 0) made.target = static_cast<uint32_t>(op.call);
    if (op.branch_target >= 0) {
      made.target = static_cast<uint32_t>(op.branch_target);
      if (made.target <= code_->ops.size()) made.aux |= 1;
    }
    if (op.branch_table >= 0) emit_branch_table(op, made);
    set_waits(op, made);
    code_->ops.push_back(made);
    code_->info.push_back({op.instruction});
  }

  void emit_branch_table(const IrOp& op, MicroOp& made) {
    const auto& table = ir_.function->branch_tables[static_cast<size_t>(op.branch_table)];
    made.list = static_cast<uint32_t>(code_->branch_targets.size());
    made.list_size = static_cast<uint16_t>(std::min<size_t>(table.size(), 0xffff));
    code_->branch_targets.insert(code_->branch_targets.end(), table.begin(),
                                 table.begin() + made.list_size);
  }

  /// The slots that a load may still be filling when the operation wants them.
  void set_waits(const IrOp& op, MicroOp& made) const {
    for (const PlacedRef& placed : op.operands) {
      const Ref& ref = placed.ref;
      if (ref.kind != Ref::Kind::kRegister || is_predicate(ref.index)) continue;
      if (placed.operand.plain.is_destination) continue;
      // The run loop looks at lists of sources itself.
      if (placed.operand.kind == OpOperand::Kind::kList) continue;
      uint16_t slot = slots_.registers[ref.index].index;
      bool is_known =
          std::find(made.waits, made.waits + made.num_waits, slot) != made.waits + made.num_waits;
      if (!loaded_[slot] || is_known || made.num_waits == std::size(made.waits)) continue;
      made.waits[made.num_waits++] = slot;
    }
  }

  /// In-order issue within a block: an operation is issued when its sources, loads apart, are
  /// there.
  void set_stalls(const BasicBlock& block) {
    uint32_t issued = 0;
    available_.clear();
    for (uint32_t i = block.first; i < block.end; ++i) {
      const IrOp& op = ir_.ops[i];
      uint32_t earliest = issued + 1;
      for_each_register(op, [&](uint32_t reg, bool is_destination) {
        if (is_destination) return;
        auto found = available_.find(reg);
        if (found != available_.end()) earliest = std::max(earliest, found->second);
      });
      code_->ops[i].stall_cycles = static_cast<uint16_t>(std::min(earliest - issued, kMaxStall));
      issued = earliest;
      bool is_load = (op.flags & kOpLoad) != 0;
      for_each_register(op, [&](uint32_t reg, bool is_destination) {
        if (!is_destination) return;
        if (is_load) {
          available_.erase(reg);
        } else {
          available_[reg] = issued + cycles_of(stalls_, op);
        }
      });
    }
  }

  const FunctionIr& ir_;
  const FlowGraph& graph_;
  const Liveness& live_;
  const SlotMap& slots_;
  const StallModel& stalls_;
  const uint32_t first_site_;
  std::unique_ptr<FunctionCode> code_;
  std::vector<bool> loaded_;
  std::unordered_map<uint32_t, uint32_t> available_;
};

}  // namespace

std::unique_ptr<FunctionCode> emit_code(const FunctionIr& ir, const FlowGraph& graph,
                                        const Liveness& live, const SlotMap& slots,
                                        const StallModel& stalls, uint32_t first_site) {
  return Emitter(ir, graph, live, slots, stalls, first_site).run();
}

}  // namespace cb::sim
