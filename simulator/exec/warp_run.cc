// The loop that executes operations. Timed and functional execution drive the same handlers; they
// differ in what an operation costs and in whether order matters before it is executed.
//
// Time: a group has a clock, and an operation is issued when its sources are there. Where order
// does not matter (weak accesses, arithmetic) a warp runs ahead of the others by up to kSlack.
// Operations whose order matters take effect when they reach memory: the warp is put off until
// everything that happens before that moment has happened, then goes on with the clock it had.

#include <bit>
#include <type_traits>
#include <utility>

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

/// What a group waits for that stopped running.
Stall waited_for(const Group& group) {
  switch (group.state) {
    case GroupState::kBarrier:
    case GroupState::kCluster:
    case GroupState::kExchange:
      return Stall::kBarrier;
    case GroupState::kGrids:
      return Stall::kLaunch;
    case GroupState::kParked: {
      bool is_mbarrier = !group.watches.empty() && group.watches.front().is_mbarrier;
      return is_mbarrier ? Stall::kMbarrier : Stall::kSpin;
    }
    case GroupState::kReady:
    case GroupState::kRegisters:
      break;
  }
  return Stall::kIssue;
}

/// Counts the time of one slice for the ledger. What is not counted yet lies between `until_` and
/// the group's clock.
class SliceCount {
 public:
  SliceCount(LineLedger& ledger, Context& c, const Group& group)
      : ledger_(ledger), c_(c), clock_(ledger.clock_of(group)) {
    until_ = clock_.until;
  }

  void begin(const MicroOp* op) {
    if (c_.code != code_) {
      code_ = c_.code;
      function_ = c_.run->costs->number.at(code_);
    }
    frame_ = c_.frame;
    pc_ = static_cast<uint32_t>(op - code_->ops.data());
    cost_ = &c_.run->costs->functions[function_][pc_];
    c_.access.sectors = 0;
    c_.access.bytes = 0;
  }
  /// The time before the operation: the group did not run.
  void waited() { settle(std::exchange(clock_.waits_for, Stall::kIssue)); }
  /// After the wait for `issue` and for the operands.
  void stalled(const MicroOp* op, Time issue) {
    Time since = c_.now > until_ ? c_.now - until_ : 0;
    cost_->time[static_cast<size_t>(Stall::kIssue)] += std::min(since, issue);
    until_ += std::min(since, issue);
    if (until_ < c_.now) settle(source(op));
  }
  /// After the operation; `lanes` executed it.
  void executed(const MicroOp* op, uint32_t lanes) {
    ++cost_->instructions;
    cost_->lanes += lanes;
    const MemoryAccess& access = c_.access;
    own_ = c_.run->costs->own[function_][pc_];
    if ((op->flags & (kOpMemory | kOpStrongStore)) != 0 && access.bytes + access.sectors != 0) {
      using Target = MemoryAccess::Target;
      bool is_near = access.target != Target::kPinned && access.target != Target::kMulticast &&
                     (access.target != Target::kDevice || access.device == c_.run->launch.device);
      own_ = is_near ? Stall::kMemoryLocal : Stall::kMemoryRemote;
      LineLedger::add_bytes(*c_.run->costs, *code_, pc_, c_.run->launch.device, access,
                            uint64_t{access.sectors} * kSectorBytes);
    }
    if ((op->flags & kOpLoad) != 0 || own_ == Stall::kTensor) mark(op);
  }
  void settle_own() { settle(own_); }
  void settle(Stall stall) {
    if (c_.now <= until_ || cost_ == nullptr) return;
    cost_->time[static_cast<size_t>(stall)] += c_.now - until_;
    until_ = c_.now;
  }
  /// The group stops; it may be gone.
  void end() {
    if (c_.group == nullptr || c_.stop == Stop::kFault) return;
    LineLedger::GroupClock& clock = ledger_.clock_of(*c_.group);
    clock.until = until_;
    if (!c_.group->ordered_pending) clock.waits_for = waited_for(*c_.group);
  }

 private:
  static constexpr uint64_t kSectorBytes = 32;

  void mark(const MicroOp* op) {
    if (op->list_size == 0) {
      ledger_.set_source(*frame_, op->d.index, own_);
      return;
    }
    for (uint32_t i = 0; i < op->list_size; ++i) {
      ledger_.set_source(*frame_, code_->lists[op->list + i].index, own_);
    }
  }
  /// What filled the operand that came last.
  Stall source(const MicroOp* op) const {
    for (int i = 0; i < op->num_waits; ++i) {
      if (frame_->ready[op->waits[i]] == c_.now) return ledger_.source_of(*frame_, op->waits[i]);
    }
    for (uint32_t i = 0; (op->flags & kOpListSource) != 0 && i < op->list_size; ++i) {
      uint16_t slot = code_->lists[op->list + i].index;
      if (slot < code_->num_slots && frame_->ready[slot] == c_.now) {
        return ledger_.source_of(*frame_, slot);
      }
    }
    return Stall::kIssue;
  }

  LineLedger& ledger_;
  Context& c_;
  LineLedger::GroupClock& clock_;
  Time until_ = 0;
  const FunctionCode* code_ = nullptr;
  const Frame* frame_ = nullptr;
  uint32_t function_ = 0;
  uint32_t pc_ = 0;
  OpCost* cost_ = nullptr;
  Stall own_ = Stall::kIssue;
};

struct NoCount {};

/// One slice of one group. kCounted: what it costs is written into the engine's ledger.
template <bool kTimed, bool kCounted>
class Slice {
 public:
  Slice(EngineState& engine, Context& c, Group& group)
      : engine_(engine),
        c_(c),
        group_(group),
        op_(c.code->ops.data() + group.pc),
        stop_at_(meeting_point(*c.warp, group)),
        issue_from_(c.now),
        cycle_ps_(engine.cycle_ps * engine.ranks[static_cast<size_t>(c.run->launch.rank)].pace),
        count_(make_count()) {}

  Stop run() {
    Stop stop = loop();
    issue();
    if constexpr (kCounted) {
      count_.settle(Stall::kIssue);
      count_.end();
    }
    EngineStats& stats = engine_.ranks[static_cast<size_t>(c_.run->launch.rank)].stats;
    stats.warp_instructions += executed_;
    stats.lane_instructions += lanes_;
    return stop;
  }

 private:
  auto make_count() {
    if constexpr (kCounted) {
      return SliceCount(*engine_.options.ledger, c_, group_);
    } else {
      return NoCount{};
    }
  }

  Stop loop() {
    for (;;) {
      const MicroOp* op = op_;
      const uint16_t flags = op->flags;
      if constexpr (kTimed) {
        if (group_.ordered_pending || group_.resumed) {
          // Its issue was charged before it was put off.
          if constexpr (kCounted) {
            count_.begin(op);
            if (!group_.ordered_pending) count_.waited();
          }
        } else {
          if constexpr (kCounted) {
            count_.begin(op);
            count_.waited();
          }
          stall(op);
          if constexpr (kCounted) count_.stalled(op, op->stall_cycles * cycle_ps_);
        }
        bool in_order = (flags & (kOpOrdered | kOpRelease)) != 0 ||
                        ((flags & kOpMemory) != 0 && !c_.block->pending.empty());
        if (in_order && !admit(op)) return Stop::kYield;
      } else {
        c_.now += engine_.cycle_ps;
      }
      c_.stop = Stop::kNone;
      const uint32_t lanes = static_cast<uint32_t>(std::popcount(c_.group_mask));
      const MicroOp* next = step(op, flags);
      ++executed_;
      if constexpr (kCounted) count_.executed(op, lanes);
      lanes_ += static_cast<uint64_t>(std::popcount(c_.group_mask));
      if (next == nullptr) [[unlikely]]
        return leave(op);
      if constexpr (kTimed) {
        if ((flags & kOpOrdered) != 0) settle_ordered();
        if ((flags & (kOpMemory | kOpStrongStore)) == kOpMemory) charge(op);
        if constexpr (kCounted) count_.settle_own();
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
    if constexpr (kCounted) count_.settle(Stall::kIssue);
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
      if constexpr (kCounted) count_.settle_own();
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
  [[no_unique_address]] std::conditional_t<kCounted, SliceCount, NoCount> count_;
};

Stop run_slice(EngineState& engine, Context& c, Group& group) {
  if (!engine.options.timed) return Slice<false, false>(engine, c, group).run();
  if (c.run->costs == nullptr) return Slice<true, false>(engine, c, group).run();
  return Slice<true, true>(engine, c, group).run();
}

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
    Stop stop = run_slice(*this, c, *group);
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
