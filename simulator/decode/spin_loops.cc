#include "simulator/decode/spin_loops.h"

#include <set>

namespace cb::sim {
namespace {

/// Longer loops do work.
constexpr uint32_t kMaxLoopOps = 512;

SpinLoop carried_by(const FunctionIr& ir, const RegisterSet& live_in, const SlotMap& slots,
                    uint32_t first, uint32_t last) {
  std::set<uint32_t> defined;
  for (uint32_t i = first; i <= last; ++i) {
    for_each_register(ir.ops[i], [&](uint32_t reg, bool is_destination) {
      if (is_destination && live_in.has(reg)) defined.insert(reg);
    });
  }
  SpinLoop loop;
  for (uint32_t reg : defined) {
    ptx::Type type = ir.function->registers[reg].type;
    if (type == ptx::Type::kPred) {
      loop.carried_predicates.push_back(slots.registers[reg].index);
    } else {
      loop.carried.push_back({slots.registers[reg], static_cast<uint8_t>(ptx::bytes_of(type))});
    }
  }
  return loop;
}

}  // namespace

void find_spin_loops(const FunctionIr& ir, const FlowGraph& graph, const Liveness& live,
                     const SlotMap& slots, FunctionCode& code) {
  auto size = static_cast<uint32_t>(ir.ops.size());
  std::vector<uint32_t> waits(size + 1, 0);
  std::vector<uint32_t> effects(size + 1, 0);
  for (uint32_t i = 0; i < size; ++i) {
    waits[i + 1] = waits[i] + ((ir.ops[i].flags & kOpWaits) != 0 ? 1 : 0);
    effects[i + 1] = effects[i] + ((ir.ops[i].flags & kOpSideEffect) != 0 ? 1 : 0);
  }
  for (uint32_t i = 0; i < size; ++i) {
    const IrOp& op = ir.ops[i];
    if (op.branch_target < 0 || static_cast<uint32_t>(op.branch_target) > i) continue;
    auto first = static_cast<uint32_t>(op.branch_target);
    if (i - first > kMaxLoopOps || waits[i + 1] == waits[first] ||
        effects[i + 1] != effects[first]) {
      continue;
    }
    const RegisterSet& live_in = live.live_in[graph.block_of[first]];
    code.spin_loops.push_back(carried_by(ir, live_in, slots, first, i));
    code.ops[i].immediate = code.spin_loops.size();
  }
}

}  // namespace cb::sim
