// The loop that executes operations. Timed and functional execution drive the same handlers; they
// differ in what an operation costs and in whether order matters before it is executed.
//
// Time: a group has a clock, and an operation is issued when its sources are there. Where order
// does not matter (weak accesses, arithmetic) a warp runs ahead of the others by up to kSlack.
// Operations whose order matters take effect when they reach memory: the warp is put off until
// everything that happens before that moment has happened, then goes on with the clock it had.

#include <bit>

#include "base/check.h"
#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

/// Scope of a release, for what it costs. Rare enough to be read from the text.
Scope scope_of(const Context& c, const MicroOp* op) {
  const FunctionCode& code = *c.code;
  const OpInfo& info = code.info[static_cast<size_t>(op - code.ops.data())];
  const ptx::Instruction& instruction = code.source->body[info.instruction];
  if (instruction.has("cta")) return Scope::kBlock;
  if (instruction.has("cluster")) return Scope::kCluster;
  return instruction.has("gpu") ? Scope::kDevice : Scope::kSystem;
}

/// The lowest place of another ready group ahead of this one: where they may join.
const MicroOp* meeting_point(const Warp& warp, const Group& group) {
  const MicroOp* none = reinterpret_cast<const MicroOp*>(UINTPTR_MAX);
  if (warp.groups.size() == 1) return none;
  uint32_t lowest = ~0u;
  for (const auto& other : warp.groups) {
    if (other.get() == &group || other->frame != group.frame) continue;
    if (other->state == GroupState::kReady && other->pc > group.pc) {
      lowest = std::min(lowest, other->pc);
    }
  }
  return lowest == ~0u ? none : group.frame->code->ops.data() + lowest;
}

/// One slice of one group.
template <bool kTimed>
class Slice {
 public:
  Slice(EngineState& engine, Context& c, Group& group)
      : engine_(engine),
        c_(c),
        group_(group),
        op_(c.code->ops.data() + group.pc),
        stop_at_(meeting_point(*c.warp, group)),
        issue_from_(c.now),
        cycle_ps_(engine.cycle_ps * engine.ranks[static_cast<size_t>(c.run->launch.rank)].pace) {}

  Stop run() {
    Stop stop = loop();
    issue();
    EngineStats& stats = engine_.ranks[static_cast<size_t>(c_.run->launch.rank)].stats;
    stats.warp_instructions += executed_;
    stats.lane_instructions += lanes_;
    return stop;
  }

 private:
  Stop loop() {
    for (;;) {
      const MicroOp* op = op_;
      const uint16_t flags = op->flags;
      if constexpr (kTimed) {
        if (group_.ordered_pending || group_.resumed) {
          // Its issue was charged before it was put off.
        } else {
          stall(op);
        }
        bool in_order = (flags & (kOpOrdered | kOpRelease)) != 0 ||
                        ((flags & kOpMemory) != 0 && !c_.block->pending.empty());
        if (in_order && !admit(op)) return Stop::kYield;
      } else {
        c_.now += engine_.cycle_ps;
      }
      c_.stop = Stop::kNone;
      const MicroOp* next = step(op, flags);
      ++executed_;
      lanes_ += static_cast<uint64_t>(std::popcount(c_.group_mask));
      if (next == nullptr) [[unlikely]]
        return leave(op);
      if constexpr (kTimed) {
        if ((flags & kOpOrdered) != 0) settle_ordered();
        if ((flags & (kOpMemory | kOpStrongStore)) == kOpMemory) charge(op);
      }
      op_ = next;
      if (next >= stop_at_) [[unlikely]]
        return save(Stop::kSwitch);
      if ((flags & (kOpControl | kOpMemory | kOpOrdered)) != 0 && must_yield()) {
        return save(Stop::kYield);
      }
    }
  }

  const MicroOp* step(const MicroOp* op, uint16_t flags) {
    if (op->guard < 0 || (flags & kOpControl) != 0) return op->fn(c_, op);
    uint32_t wanted = c_.predicates[op->guard];
    if ((flags & kOpGuardNegated) != 0) wanted = ~wanted;
    uint32_t active = c_.group_mask & wanted;
    if (active == c_.group_mask) return op->fn(c_, op);
    c_.access.kind = MemoryAccess::Kind::kNone;
    if (active == 0) return op + 1;
    c_.mask = active;
    bool full = c_.full;
    c_.full = false;
    const MicroOp* next = op->fn(c_, op);
    c_.mask = c_.group_mask;
    c_.full = full;
    return next;
  }

  void stall(const MicroOp* op) {
    Time t = c_.now + op->stall_cycles * cycle_ps_;
    const Time* ready = c_.frame->ready;
    for (int i = 0; i < op->num_waits; ++i) t = std::max(t, ready[op->waits[i]]);
    if ((op->flags & kOpListSource) != 0) [[unlikely]] {
      for (int i = 0; i < op->list_size; ++i) {
        uint16_t slot = c_.code->lists[op->list + static_cast<uint32_t>(i)].index;
        if (slot < c_.code->num_slots) t = std::max(t, ready[slot]);
      }
    }
    c_.now = t;
    ++slots_;
  }

  /// Whether the operation may be executed now. Sets `reached_`: when it takes effect.
  bool admit(const MicroOp* op) {
    const uint16_t flags = op->flags;
    reached_ = c_.now;
    if (!group_.ordered_pending) {
      issued_ = c_.now;
      if ((flags & kOpRelease) != 0 && !group_.resumed) {
        fence(c_, scope_of(c_, op));
        issued_ = c_.now;
      }
      bool ordered = (flags & (kOpOrdered | kOpStrongStore)) == kOpOrdered;
      if (ordered) reached_ = engine_.reach_time(c_, op);
      if (!c_.block->pending.empty() && (flags & kOpStrongStore) == 0) [[unlikely]] {
        if (auto visible = engine_.pending_overlap(c_, op)) {
          reached_ = std::max(reached_, *visible);
          ordered = true;
        }
      }
      if (!ordered) return true;
    } else {
      issued_ = group_.issue_clock;
    }
    if (reached_ > engine_.horizon()) {
      group_.issue_clock = issued_;
      group_.ordered_pending = true;
      c_.now = reached_;
      save(Stop::kYield);
      return false;
    }
    group_.ordered_pending = false;
    c_.now = reached_;
    return true;
  }

  /// Back from the time of effect to the group's own clock.
  void settle_ordered() {
    if (c_.now >= reached_) c_.now = issued_ + (c_.now - reached_);
  }

  void charge(const MicroOp* op) {
    if (c_.access.kind == MemoryAccess::Kind::kNone) return;
    issue();
    engine_.charge(c_, op);
    c_.access.kind = MemoryAccess::Kind::kNone;
    issue_from_ = c_.now;
  }

  /// Claims the issue slots of the operations since the last claim.
  void issue() {
    if constexpr (kTimed) {
      if (slots_ == 0) return;
      Time end = engine_.resources.issue(c_.run->launch.device, c_.block->sm, c_.warp->slot,
                                         issue_from_, slots_);
      c_.now = std::max(c_.now, end);
      issue_from_ = c_.now;
      slots_ = 0;
    }
  }

  bool must_yield() const {
    if (executed_ >= kQuantum) return true;
    return engine_.is_too_far(c_.now);
  }

  Stop save(Stop stop) {
    group_.pc = static_cast<uint32_t>(op_ - c_.code->ops.data());
    return stop;
  }

  /// After an operation that did not say where to go on: it set the group's place itself, except
  /// that it will be executed again when it waits.
  Stop leave(const MicroOp* op) {
    if constexpr (kTimed) {
      if ((op->flags & kOpOrdered) != 0) settle_ordered();
    }
    return c_.stop;
  }

  EngineState& engine_;
  Context& c_;
  Group& group_;
  const MicroOp* op_;
  const MicroOp* stop_at_;
  Time issue_from_;
  Time cycle_ps_;
  Time issued_ = 0;
  Time reached_ = 0;
  uint32_t slots_ = 0;
  uint32_t executed_ = 0;
  uint64_t lanes_ = 0;
};

}  // namespace

void EngineState::run_warp(Warp& warp) {
  Context c;
  c.engine = this;
  c.timed = options.timed;
  c.memory = &memory;
  c.watch = &filter;
  if (num_deadlines != 0) wake_expired(warp);
  while (warp.live != 0) {
    Group* group = choose_group(warp);
    if (group == nullptr) {
      if (num_deadlines != 0) queue_deadlines(warp);
      return;
    }
    if (group->ordered_pending ? group->now > horizon() : is_too_far(group->now)) {
      queue_warp(warp, group->now);
      return;
    }
    load_group(c, warp, *group);
    Stop stop =
        options.timed ? Slice<true>(*this, c, *group).run() : Slice<false>(*this, c, *group).run();
    if (stop == Stop::kFault) {
      abandon(*warp.block->run);
      return;
    }
    // An exit may have ended the group.
    if (c.group != nullptr) group->now = c.now;
    if (stop == Stop::kYield) {
      queue_warp(warp, group->now);
      return;
    }
  }
  Block& block = *warp.block;
  if (block.live_warps == 0) {
    if (!copies_let_end(block, c.now)) {
      abandon(*block.run);
      return;
    }
    int device = block.run->launch.device;
    end_block(block, c.now);
    dispatch(device);
  }
}

}  // namespace cb::sim
