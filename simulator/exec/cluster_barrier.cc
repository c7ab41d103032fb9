// barrier.cluster. Threads arrive, go on, and wait later; a phase is over when all threads of the
// cluster that did not exit have arrived. As nobody arrives twice without waiting in between, a
// lane is in one of three states: outside, arrived in the present phase, or in the one before it.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

ClusterBarrier& barrier_of(Block& block) {
  return block.cluster == nullptr ? block.own_barrier : block.cluster->barrier;
}

uint32_t count(uint32_t lanes) { return static_cast<uint32_t>(std::popcount(lanes)); }

template <class Visit>
void for_each_warp(Block& block, Visit visit) {
  if (block.cluster == nullptr) {
    for (Warp* warp : block.warps) visit(*warp);
    return;
  }
  for (Block* other : block.cluster->blocks) {
    if (other == nullptr) continue;
    for (Warp* warp : other->warps) visit(*warp);
  }
}

}  // namespace

void EngineState::complete_cluster_barrier(Block& block, Time time) {
  ClusterBarrier& barrier = barrier_of(block);
  barrier.opened = std::max(time, barrier.last_arrival);
  if (options.timed) barrier.opened += profile.cluster_barrier_cycles * cycle_ps;
  barrier.arrived = 0;
  barrier.last_arrival = 0;
  for_each_warp(block, [&](Warp& warp) {
    warp.cluster_passed |= warp.cluster_arrived;
    warp.cluster_arrived = 0;
    bool woken = false;
    for (const auto& group : warp.groups) {
      if (group->state != GroupState::kCluster) continue;
      group->state = GroupState::kReady;
      group->resumed = true;
      group->now = std::max(group->now, barrier.opened);
      woken = true;
    }
    if (woken) run_soon(warp, barrier.opened);
  });
}

void EngineState::leave_cluster_barrier(Warp& warp, uint32_t lanes, Time time) {
  ClusterBarrier& barrier = barrier_of(*warp.block);
  barrier.live -= count(lanes);
  barrier.arrived -= count(lanes & warp.cluster_arrived);
  warp.cluster_arrived &= ~lanes;
  warp.cluster_passed &= ~lanes;
  if (barrier.arrived != 0 && barrier.arrived == barrier.live) {
    complete_cluster_barrier(*warp.block, time);
  }
}

bool arrive_at_cluster(Context& c, const MicroOp* op, bool release) {
  Warp& warp = *c.warp;
  uint32_t twice = c.mask & (warp.cluster_arrived | warp.cluster_passed);
  if (twice != 0) {
    fault(c, op, Finding::Kind::kBarrierDivergence, std::countr_zero(twice),
          "arrives at the barrier of the cluster again without having waited");
    return false;
  }
  ClusterBarrier& barrier = barrier_of(*c.block);
  warp.cluster_arrived |= c.mask;
  barrier.arrived += count(c.mask);
  Time arrival = c.now;
  if (release && c.timed) arrival = std::max({arrival, warp.stores_done, c.block->stores_done});
  barrier.last_arrival = std::max(barrier.last_arrival, arrival);
  if (barrier.arrived == barrier.live) c.engine->complete_cluster_barrier(*c.block, c.now);
  return true;
}

bool wait_for_cluster(Context& c, const MicroOp* op, bool acquire) {
  Warp& warp = *c.warp;
  c.group->resumed = false;
  uint32_t outside = c.mask & ~(warp.cluster_arrived | warp.cluster_passed);
  if (outside != 0) {
    fault(c, op, Finding::Kind::kBarrierDivergence, std::countr_zero(outside),
          "waits at the barrier of the cluster without having arrived");
    return false;
  }
  uint32_t waiting = c.mask & warp.cluster_arrived;
  if (waiting == 0) {
    warp.cluster_passed &= ~c.mask;
    c.now = std::max(c.now, barrier_of(*c.block).opened);
    if (acquire && c.timed) {
      c.engine->resources.invalidate_l1(c.run->launch.device, c.block->sm);
    }
    return true;
  }
  auto pc = static_cast<uint32_t>(op - c.code->ops.data());
  // The others come here again, and go on.
  if (waiting != c.group_mask) c.engine->split(c, c.group_mask & ~waiting, pc);
  Group& group = *c.group;
  group.pc = pc;
  group.state = GroupState::kCluster;
  group.now = c.now;
  c.stop = Stop::kBlocked;
  return false;
}

}  // namespace cb::sim
