// What matrix instructions cost. A warp goes on when its tensor core has taken the instruction.

#include <algorithm>

#include "simulator/exec/engine_state.h"

namespace cb::sim {

void charge_tensor(Context& c, const MicroOp* op, const Resources::TensorWork& work,
                   unsigned num_results) {
  if (!c.timed) return;
  EngineState& engine = *c.engine;
  Resources::TensorTime time =
      engine.resources.tensor(c.run->launch.device, c.block->sm, c.warp->slot, c.now, work);
  uint32_t pace = engine.ranks[static_cast<size_t>(c.run->launch.rank)].pace;
  Time done = time.done + (time.done - time.started) * (pace - 1);
  c.now = std::max(c.now, time.started);
  if (work.warpgroup) c.warp->tensor.open = std::max(c.warp->tensor.open, done);
  for (uint32_t i = 0; i < num_results; ++i) {
    uint16_t slot = c.code->lists[op->list + i].index;
    if (slot < c.code->num_slots) c.frame->ready[slot] = done;
  }
}

void commit_tensor_group(Context& c) {
  TensorGroups& groups = c.warp->tensor;
  Time done = std::max(groups.open, groups.committed[0]);
  std::copy_backward(std::begin(groups.committed), std::end(groups.committed) - 1,
                     std::end(groups.committed));
  groups.committed[0] = done;
  groups.open = 0;
}

void wait_tensor_groups(Context& c, unsigned pending) {
  c.now = std::max(c.now, c.warp->tensor.committed[pending]);
}

std::optional<unsigned> rank_in_warpgroup(const Context& c) {
  constexpr uint32_t kWarps = 4;
  uint32_t index = c.warp->index;
  if ((index / kWarps + 1) * kWarps > c.block->warps.size()) return std::nullopt;
  return index % kWarps;
}

}  // namespace cb::sim
