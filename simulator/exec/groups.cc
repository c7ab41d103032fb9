// Groups of lanes: which one runs, how they part and come together again.
//
// Of the groups that can run, the one that took fewest rounds of loops goes first, and among those
// the one at the lowest place, so that lanes which left a branch early wait for the others where
// the branches join, and a lane that waits for another lane of its warp lets it go on.

#include <algorithm>
#include <bit>

#include "base/check.h"
#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

uint32_t place_of_op(const Context& c, const MicroOp* op) {
  return static_cast<uint32_t>(op - c.code->ops.data());
}

bool same_place(const Group& a, const Group& b) { return a.frame == b.frame && a.pc == b.pc; }

/// Gives a group's lanes to another at the same place.
void join(Group& into, const Group& from) {
  into.mask |= from.mask;
  into.now = std::max(into.now, from.now);
  into.rounds = std::max(into.rounds, from.rounds);
}

void reload_masks(Context& c) {
  const Group& group = *c.group;
  c.group_mask = group.mask;
  c.mask = group.mask;
  c.full = covers(group.mask, ~(group.frame->mask & c.warp->live));
}

}  // namespace

void EngineState::load_group(Context& c, Warp& warp, Group& group) {
  Block& block = *warp.block;
  Frame& frame = *group.frame;
  c.meta = frame.meta;
  c.vectors = frame.vectors;
  c.predicates = frame.predicates;
  c.code = frame.code;
  c.frame = &frame;
  c.group = &group;
  c.warp = &warp;
  c.block = &block;
  c.run = block.run;
  c.now = group.now;
  c.recorder = group.recorder.get();
  c.sites = block.run->sites.data();
  c.shared_base = block.shared_base;
  c.shared_bytes = block.shared_bytes;
  c.local_base = warp.local_base;
  c.local_lane_bytes = warp.local_lane_bytes;
  c.access.kind = MemoryAccess::Kind::kNone;
  c.stop = Stop::kNone;
  reload_masks(c);
}

void EngineState::merge_groups(Warp& warp) {
  auto& groups = warp.groups;
  for (size_t i = 0; i < groups.size(); ++i) {
    Group& into = *groups[i];
    if (into.state != GroupState::kReady || into.ordered_pending) continue;
    for (size_t k = groups.size(); k-- > i + 1;) {
      Group& from = *groups[k];
      if (from.state != GroupState::kReady || from.ordered_pending || !same_place(into, from) ||
          from.resumed != into.resumed) {
        continue;
      }
      join(into, from);
      into.recorder.reset();
      into.spin_pc = ~0u;
      if (options.ledger != nullptr) options.ledger->forget(from);
      groups.erase(groups.begin() + static_cast<ptrdiff_t>(k));
    }
  }
}

Group* EngineState::choose_group(Warp& warp) {
  if (warp.groups.size() == 1) {
    Group* only = warp.groups.front().get();
    return only->state == GroupState::kReady ? only : nullptr;
  }
  merge_groups(warp);
  Group* best = nullptr;
  for (const auto& group : warp.groups) {
    if (group->state != GroupState::kReady) continue;
    if (best == nullptr || group->rounds < best->rounds ||
        (group->rounds == best->rounds && group->pc < best->pc)) {
      best = group.get();
    }
  }
  return best;
}

Group& EngineState::split(Context& c, uint32_t lanes, uint32_t pc) {
  auto group = std::make_unique<Group>();
  group->frame = c.frame;
  group->pc = pc;
  group->mask = lanes;
  group->rounds = c.group->rounds;
  group->back_edges = c.group->back_edges;
  group->now = c.now;
  c.group->mask &= ~lanes;
  c.group->recorder.reset();
  c.recorder = nullptr;
  reload_masks(c);
  c.warp->groups.push_back(std::move(group));
  return *c.warp->groups.back();
}

void EngineState::drop_group(Warp& warp, Group& group) {
  if (group.state == GroupState::kParked) forget_watches(group);
  auto place = std::find_if(warp.groups.begin(), warp.groups.end(),
                            [&](const auto& other) { return other.get() == &group; });
  CB_CHECK(place != warp.groups.end(), "a group is dropped once");
  if (options.ledger != nullptr) options.ledger->forget(group);
  warp.groups.erase(place);
}

void EngineState::drop_unused_frames(Warp& warp) {
  auto is_used = [&](const Frame* frame) {
    for (const auto& group : warp.groups) {
      for (const Frame* used = group->frame; used != nullptr; used = used->caller) {
        if (used == frame) return true;
      }
    }
    return false;
  };
  std::erase_if(warp.frames, [&](const auto& frame) { return !is_used(frame.get()); });
}

void EngineState::exit_lanes(Context& c, uint32_t lanes) {
  Warp& warp = *c.warp;
  Block& block = *c.block;
  warp.live &= ~lanes;
  c.group->mask &= ~lanes;
  if (c.group->mask == 0) {
    drop_group(warp, *c.group);
    c.group = nullptr;
  } else {
    reload_masks(c);
  }
  leave_cluster_barrier(warp, lanes, c.now);
  if (warp.live == 0) --block.live_warps;
  if (!warp.groups.empty()) recheck_exchanges(warp);
  if (block.live_warps != 0) recheck_barriers(block, c.now);
}

void EngineState::recheck_exchanges(Warp& warp) {
  for (const auto& group : warp.groups) {
    if (group->state != GroupState::kExchange) continue;
    uint32_t together = 0;
    for (const auto& other : warp.groups) {
      if (other->state == GroupState::kExchange &&
          (other->exchange_mask & warp.live) == (group->exchange_mask & warp.live)) {
        together |= other->mask;
      }
    }
    if ((group->exchange_mask & warp.live & ~together) != 0) continue;
    // Their operations are executed again, and find all lanes there.
    for (const auto& other : warp.groups) {
      if (other->state == GroupState::kExchange) other->state = GroupState::kReady;
    }
    return;
  }
}

bool gather_lanes(Context& c, const MicroOp* op, uint32_t members) {
  EngineState& engine = *c.engine;
  Warp& warp = *c.warp;
  uint32_t needed = members & warp.live;
  if ((needed & ~c.mask) == 0) return true;
  if (c.mask != c.group_mask) {
    Group& rest = engine.split(c, c.group_mask & ~c.mask, place_of_op(c, op) + 1);
    rest.now = c.now;
  }
  Group& group = *c.group;
  group.pc = place_of_op(c, op);
  uint32_t together = group.mask;
  uint32_t elsewhere = 0;
  for (const auto& other : warp.groups) {
    if (other->state != GroupState::kExchange) continue;
    (same_place(*other, group) ? together : elsewhere) |= other->mask;
  }
  if ((needed & ~together) == 0) {
    for (size_t i = warp.groups.size(); i-- > 0;) {
      Group& other = *warp.groups[i];
      if (&other == &group || other.state != GroupState::kExchange || !same_place(other, group)) {
        continue;
      }
      join(group, other);
      if (c.run->costs != nullptr) c.engine->options.ledger->forget(other);
      warp.groups.erase(warp.groups.begin() + static_cast<ptrdiff_t>(i));
    }
    c.now = std::max(c.now, group.now);
    reload_masks(c);
    return true;
  }
  if ((needed & ~(together | elsewhere)) == 0) {
    fault(c, op, Finding::Kind::kUnsupported, std::countr_zero(c.mask),
          "the lanes of this warp-wide operation meet at different instructions");
    return false;
  }
  group.state = GroupState::kExchange;
  group.exchange_mask = members;
  group.now = c.now;
  c.stop = Stop::kBlocked;
  return false;
}

bool sync_lanes(Context& c, const MicroOp* op, uint32_t members) {
  EngineState& engine = *c.engine;
  Warp& warp = *c.warp;
  if (c.group->resumed) {
    c.group->resumed = false;
    return true;
  }
  uint32_t needed = members & warp.live;
  if ((needed & ~c.mask) == 0) return true;
  if (c.mask != c.group_mask) {
    engine.split(c, c.group_mask & ~c.mask, place_of_op(c, op) + 1);
  }
  Group& group = *c.group;
  group.pc = place_of_op(c, op);
  group.exchange_mask = members;
  uint32_t together = group.mask;
  for (const auto& other : warp.groups) {
    if (other->state == GroupState::kExchange && (other->exchange_mask & warp.live) == needed) {
      together |= other->mask;
    }
  }
  group.now = c.now;
  c.stop = Stop::kBlocked;
  if ((needed & ~together) != 0) {
    group.state = GroupState::kExchange;
    return false;
  }
  for (const auto& other : warp.groups) {
    bool waits =
        other->state == GroupState::kExchange && (other->exchange_mask & warp.live) == needed;
    if (!waits && other.get() != &group) continue;
    other->state = GroupState::kReady;
    other->resumed = true;
    other->now = std::max(other->now, c.now);
  }
  c.stop = Stop::kSwitch;
  return false;
}

}  // namespace cb::sim
