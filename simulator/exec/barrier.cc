// Barriers of a block. A warp counts when all of its lanes that live have arrived, in whatever
// order; lanes that exited are not waited for.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

uint32_t live_threads(const Block& block) {
  uint32_t threads = 0;
  for (const Warp* warp : block.warps) {
    threads += static_cast<uint32_t>(std::popcount(warp->live));
  }
  return threads;
}

/// Threads that count as arrived: of a warp whose lanes have all come, the whole warp, as hardware
/// counts where a barrier names a number of threads.
bool is_complete(const Block& block, const BlockBarrier& barrier) {
  if (barrier.expected == 0) return barrier.arrived >= live_threads(block);
  return barrier.arrived_in_warps >= barrier.expected;
}

}  // namespace

void EngineState::complete_barrier(Block& block, uint32_t number, Time time) {
  BlockBarrier& barrier = block.barriers[number];
  Time resume = std::max(time, barrier.last_arrival);
  if (options.timed) resume += profile.barrier_cycles * cycle_ps;
  block.barrier_results[number] = barrier.reduction;
  for (Warp* warp : block.warps) {
    block.stores_done = std::max(block.stores_done, warp->stores_done);
    bool woken = false;
    for (const auto& group : warp->groups) {
      if (group->state != GroupState::kBarrier || group->barrier != number) continue;
      group->state = GroupState::kReady;
      group->resumed = true;
      group->now = std::max(group->now, resume);
      woken = true;
    }
    if (woken) run_soon(*warp, resume);
  }
  barrier = {};
}

void EngineState::recheck_barriers(Block& block, Time time) {
  for (uint32_t number = 0; number < block.barriers.size(); ++number) {
    const BlockBarrier& barrier = block.barriers[number];
    if (barrier.is_open && is_complete(block, barrier)) complete_barrier(block, number, time);
  }
}

bool block_barrier(Context& c, const MicroOp* op, uint32_t number, uint32_t threads,
                   BarrierKind kind, uint32_t predicate_lanes) {
  EngineState& engine = *c.engine;
  if (c.group->resumed) {
    c.group->resumed = false;
    return true;
  }
  Block& block = *c.block;
  BlockBarrier& barrier = block.barriers[number];
  int lane = std::countr_zero(c.mask);
  if (barrier.is_open && barrier.expected != threads) {
    fault(c, op, Finding::Kind::kBarrierDivergence, lane,
          fmt::format("barrier {} is waited for with {} threads here and with {} elsewhere", number,
                      threads == 0 ? live_threads(block) : threads,
                      barrier.expected == 0 ? live_threads(block) : barrier.expected));
    return false;
  }
  auto lanes = static_cast<uint32_t>(std::popcount(c.mask));
  if (!barrier.is_open) barrier.reduction = {kAllLanes, 0, 0};
  barrier.is_open = true;
  barrier.expected = threads;
  barrier.arrived += lanes;
  barrier.arrived_in_warps += c.mask == c.warp->live ? kLanes : lanes;
  barrier.last_arrival = std::max(barrier.last_arrival, c.now);
  if ((predicate_lanes & c.mask) != c.mask) barrier.reduction[0] = 0;
  if ((predicate_lanes & c.mask) != 0) barrier.reduction[1] = kAllLanes;
  barrier.reduction[2] += static_cast<uint32_t>(std::popcount(predicate_lanes & c.mask));
  bool complete = is_complete(block, barrier);
  if (kind == BarrierKind::kArrive) {
    if (complete) engine.complete_barrier(block, number, c.now);
    return true;
  }
  auto pc = static_cast<uint32_t>(op - c.code->ops.data());
  if (c.mask != c.group_mask) engine.split(c, c.group_mask & ~c.mask, pc + 1);
  Group& group = *c.group;
  group.pc = pc;
  group.state = GroupState::kBarrier;
  group.barrier = number;
  group.now = c.now;
  c.stop = Stop::kBlocked;
  if (complete) {
    engine.complete_barrier(block, number, c.now);
    c.now = group.now;
  }
  return false;
}

}  // namespace cb::sim
