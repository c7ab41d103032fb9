// setmaxnreg: registers that one warp of a block gives up and another takes.

#include <fmt/format.h>

#include <bit>

#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

void wake_waiters(EngineState& engine, Block& block, Time time) {
  for (Warp* warp : block.warps) {
    bool woken = false;
    for (const auto& group : warp->groups) {
      if (group->state != GroupState::kRegisters) continue;
      group->state = GroupState::kReady;
      group->now = std::max(group->now, time);
      woken = true;
    }
    if (woken) engine.run_soon(*warp, time);
  }
}

}  // namespace

bool change_registers(Context& c, const MicroOp* op, bool more, uint32_t registers) {
  Warp& warp = *c.warp;
  Block& block = *c.block;
  if (more ? registers < warp.registers : registers > warp.registers) {
    fault(c, op, Finding::Kind::kIllegalInstruction, std::countr_zero(c.mask),
          fmt::format("{} registers per thread where the warp has {}", registers, warp.registers));
    return false;
  }
  if (!more) {
    block.spare_registers += warp.registers - registers;
    warp.registers = registers;
    wake_waiters(*c.engine, block, c.now);
    return true;
  }
  uint64_t wanted = registers - warp.registers;
  if (wanted > block.spare_registers) {
    Group& group = *c.group;
    group.pc = static_cast<uint32_t>(op - c.code->ops.data());
    group.state = GroupState::kRegisters;
    group.now = c.now;
    c.stop = Stop::kBlocked;
    return false;
  }
  block.spare_registers -= wanted;
  warp.registers = registers;
  return true;
}

}  // namespace cb::sim
