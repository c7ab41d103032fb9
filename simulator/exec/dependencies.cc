// Kernels that overlap: griddepcontrol. A kernel whose blocks have all said so, or ended, lets the
// one behind it start; that one waits, where it needs what the first one wrote, for its end.

#include <algorithm>

#include "simulator/exec/engine_state.h"

namespace cb::sim {

void EngineState::block_launches_dependents(Block& block, Time time) {
  if (block.launched_dependents) return;
  block.launched_dependents = true;
  KernelRun& run = *block.run;
  if (++run.launched_dependents != run.num_blocks || !run.launch.on_launch_dependents) return;
  // The callback starts kernels: not in the middle of an operation.
  Time when = std::max(time, now);
  queue_callback(when,
                 [callback = std::move(run.launch.on_launch_dependents), when] { callback(when); });
  run.launch.on_launch_dependents = nullptr;
}

void EngineState::dependencies_met(KernelRun& run) {
  run.launch.has_dependencies = false;
  for (const auto& block : run.blocks) {
    for (Warp* warp : block->warps) {
      bool woken = false;
      for (const auto& group : warp->groups) {
        if (group->state != GroupState::kGrids) continue;
        group->state = GroupState::kReady;
        group->now = std::max(group->now, now);
        woken = true;
      }
      if (woken) queue_warp(*warp, now);
    }
  }
}

void Engine::dependencies_met(uint64_t run) {
  auto found = state_->runs.find(run);
  if (found != state_->runs.end()) state_->dependencies_met(*found->second);
}

void launch_dependents(Context& c) { c.engine->block_launches_dependents(*c.block, c.now); }

bool wait_for_grids(Context& c, const MicroOp* op) {
  if (!c.run->launch.has_dependencies) {
    if (c.timed) c.engine->resources.invalidate_l1(c.run->launch.device, c.block->sm);
    return true;
  }
  auto pc = static_cast<uint32_t>(op - c.code->ops.data());
  if (c.mask != c.group_mask) c.engine->split(c, c.group_mask & ~c.mask, pc + 1);
  Group& group = *c.group;
  group.pc = pc;
  group.state = GroupState::kGrids;
  group.now = c.now;
  c.stop = Stop::kBlocked;
  return false;
}

}  // namespace cb::sim
