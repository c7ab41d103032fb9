// The mbarrier instructions. Each lane that executes one updates its object in turn; an object in
// another block of the cluster is updated when the message has arrived there.

#include <fmt/format.h>

#include "simulator/exec/async_address.h"
#include "simulator/exec/engine_port.h"
#include "simulator/exec/lane_ops.h"
#include "simulator/exec/memory_ops_address.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

/// Fields of MicroOp::immediate.
constexpr uint64_t kWindowMask = 3;
constexpr uint64_t kHasCount = 4;  ///< the operand after the address is a number of arrivals
constexpr uint64_t kHasBytes = 8;  ///< or of bytes
constexpr uint64_t kArrives = 16;
constexpr uint64_t kDrops = 32;
constexpr uint64_t kCompletes = 64;  ///< bytes are complete, not expected
constexpr uint64_t kNoComplete = 128;

SharedWindow window_of(const MicroOp* op) {
  return static_cast<SharedWindow>(op->immediate & kWindowMask);
}

BarrierState load_state(const SharedPlace& place) {
  return BarrierState(load_once<uint64_t>(place.address));
}

void store_state(Context& c, const SharedPlace& place, BarrierState state) {
  store_once<uint64_t>(place.address, state.bits());
  note_write(c, place.address, place.address + BarrierState::kBytes);
}

const MicroOp* refuse(Context& c, const MicroOp* op, int lane, const SharedPlace& place,
                      const std::string& why) {
  return fault(c, op, Finding::Kind::kIllegalInstruction, lane,
               fmt::format("mbarrier at shared +{}: {}", place.offset, why), place.address,
               BarrierState::kBytes, true);
}

const MicroOp* init_op(Context& c, const MicroOp* op) {
  ListedAddress address(c, op, 0, 0);
  ListedValue<uint32_t> count(c, op, kAddressEntries);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto place = locate_barrier(c, op, lane, address.of(lane), window_of(op));
    if (!place) return nullptr;
    if (count.of(lane) == 0 || count.of(lane) > BarrierState::kMaxCount) {
      return refuse(c, op, lane, *place,
                    fmt::format("a count of {}: 1 to {} are possible", count.of(lane),
                                BarrierState::kMaxCount));
    }
    store_state(c, *place, BarrierState::initial(count.of(lane)));
  }
  charge_barrier(c, false);
  return op + 1;
}

const MicroOp* inval_op(Context& c, const MicroOp* op) {
  ListedAddress address(c, op, 0, 0);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto place = locate_barrier(c, op, lane, address.of(lane), window_of(op));
    if (!place) return nullptr;
    BarrierState state = load_state(*place);
    if (!state.is_valid()) return refuse(c, op, lane, *place, "it is " + state.describe());
    store_state(c, *place, BarrierState::invalidated());
  }
  charge_barrier(c, false);
  return op + 1;
}

/// What one lane's instruction does; nullopt after a fault.
std::optional<BarrierUpdate> update_of(Context& c, const MicroOp* op, int lane,
                                       const SharedPlace& place, uint32_t value) {
  BarrierUpdate update;
  uint32_t count = (op->immediate & kHasCount) != 0 ? value : 1;
  if ((op->immediate & (kHasCount | kHasBytes)) != 0 && value > BarrierState::kMaxCount) {
    refuse(c, op, lane, place,
           fmt::format("{}: at most {} at once", value, BarrierState::kMaxCount));
    return std::nullopt;
  }
  if ((op->immediate & kHasCount) != 0 && value == 0) {
    refuse(c, op, lane, place, "a count of 0");
    return std::nullopt;
  }
  if ((op->immediate & kArrives) != 0) {
    update.arrivals = (op->immediate & kDrops) != 0 ? 0 : count;
    update.drops = (op->immediate & kDrops) != 0 ? count : 0;
  }
  if ((op->immediate & kHasBytes) != 0) {
    ((op->immediate & kCompletes) != 0 ? update.complete_bytes : update.expect_bytes) = value;
  }
  update.may_complete = (op->immediate & kNoComplete) == 0;
  return update;
}

/// arrive, arrive_drop, expect_tx, complete_tx.
const MicroOp* update_op(Context& c, const MicroOp* op) {
  ListedAddress address(c, op, 0, 0);
  bool has_value = (op->immediate & (kHasCount | kHasBytes)) != 0;
  std::optional<ListedValue<uint32_t>> value;
  if (has_value) value.emplace(c, op, kAddressEntries);
  alignas(64) uint64_t states[kLanes] = {};
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto place = locate_barrier(c, op, lane, address.of(lane), window_of(op));
    if (!place) return nullptr;
    auto update = update_of(c, op, lane, *place, has_value ? value->of(lane) : 0);
    if (!update) return nullptr;
    if (place->block != c.block) {
      AsyncCopy message;
      message.carrier = AsyncCopy::Carrier::kStore;
      message.signals.push_back({place->block, place->address, *update});
      message.add_block(place->block);
      if (!start_copy(c, op, uint32_t{1} << lane, std::move(message))) return nullptr;
      continue;
    }
    BarrierState state = load_state(*place);
    states[lane] = state.bits();
    if (auto problem = state.apply(*update)) return refuse(c, op, lane, *place, *problem);
    store_state(c, *place, state);
  }
  charge_barrier(c, op->d.index != kNoSlot);
  if (op->d.index != kNoSlot) write_lanes<uint64_t>(c, op->d, [&](int i) { return states[i]; });
  return op + 1;
}

/// The phase is over when the object is in another one than the token's, or the parity's.
template <bool by_parity>
const MicroOp* wait_op(Context& c, const MicroOp* op) {
  ListedAddress address(c, op, 0, 0);
  uint32_t over = 0;
  alignas(64) uint64_t room[kLanes];
  alignas(64) uint32_t narrow_room[kLanes];
  Slot which = c.code->lists[op->list + kAddressEntries];
  const uint64_t* tokens = by_parity ? nullptr : read_lanes<uint64_t>(c, which, room);
  const uint32_t* parities = by_parity ? read_lanes<uint32_t>(c, which, narrow_room) : nullptr;
  bool uniform = true;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uniform &= address.of(lane) == address.of(std::countr_zero(c.mask));
  }
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto place = locate_barrier(c, op, lane, address.of(lane), window_of(op));
    if (!place) return nullptr;
    BarrierState state = load_state(*place);
    if (!state.is_valid()) return refuse(c, op, lane, *place, "it is " + state.describe());
    uint32_t parity = by_parity ? parities[lane] & 1 : BarrierState(tokens[lane]).parity();
    if (state.parity() != parity) over |= uint32_t{1} << lane;
    bool is_first = lane == std::countr_zero(c.mask);
    if (c.recorder != nullptr && (is_first || !uniform)) c.recorder->read_barrier(place->address);
  }
  charge_barrier(c, true);
  write_predicate(c, op->d.index, over);
  return op + 1;
}

/// cp.async.mbarrier.arrive: an arrival when the lane's cp.async so far are complete, which the
/// phase expects in addition unless .noinc.
template <bool increments>
const MicroOp* copies_arrive_op(Context& c, const MicroOp* op) {
  ListedAddress address(c, op, 0, 0);
  AsyncCopy message;
  message.carrier = AsyncCopy::Carrier::kLoadStore;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto place = locate_barrier(c, op, lane, address.of(lane), window_of(op));
    if (!place) return nullptr;
    if constexpr (increments) {
      BarrierState state = load_state(*place);
      if (auto problem = state.apply({.added = 1})) return refuse(c, op, lane, *place, *problem);
      store_state(c, *place, state);
    }
    message.not_before = std::max(message.not_before, async_copies_done(c, lane));
    message.signals.push_back({place->block, place->address, {.arrivals = 1}});
    message.add_block(place->block);
  }
  charge_barrier(c, false);
  return start_copy(c, op, c.mask, std::move(message)) ? op + 1 : nullptr;
}

struct PendingCount {
  uint32_t apply(uint64_t token) const { return BarrierState(token).pending(); }
};

/// Takes .sem.scope.
bool take_order_and_scope(OpQuery& query, std::initializer_list<std::string_view> orders,
                          OpSpec& spec) {
  bool has_order = query.take_one(orders) >= 0;
  bool is_cluster = query.take("cluster");
  bool has_scope = is_cluster || query.take("cta");
  // Within a block order costs nothing; towards others the thread's stores have to be there.
  if (is_cluster && query.has("release")) spec.flags |= kOpRelease;
  return has_order || !has_scope;
}

void add_barrier_address(OpQuery& query, OpSpec& spec, size_t index) {
  spec.immediate |= static_cast<uint64_t>(take_shared_window(query));
  add_listed_address(query, spec, index, 0);
  spec.flags |= kOpListSource;
}

std::optional<Result<OpSpec>> find_plain(OpQuery& query, bool is_init) {
  OpSpec spec;
  spec.flags = kOpOrdered | kOpSideEffect;
  if (query.has("shared::cluster")) return query.refuse_modifiers();
  add_barrier_address(query, spec, 0);
  if (query.take("b64")) spec.fn = is_init ? init_op : inval_op;
  if (is_init) add_listed(spec, 1, Type::kU32, false);
  return query.finish(std::move(spec), is_init ? 2 : 1);
}

std::optional<Result<OpSpec>> find_bytes(OpQuery& query, bool completes) {
  OpSpec spec;
  spec.flags = kOpOrdered | kOpSideEffect;
  spec.immediate = kHasBytes | (completes ? kCompletes : 0);
  bool ordered = take_order_and_scope(query, {"relaxed"}, spec);
  add_barrier_address(query, spec, 0);
  if (query.take("b64") && ordered) spec.fn = update_op;
  add_listed(spec, 1, Type::kU32, false);
  return query.finish(std::move(spec), 2);
}

std::optional<Result<OpSpec>> find_arrive(OpQuery& query, bool drops) {
  OpSpec spec;
  spec.flags = kOpOrdered | kOpSideEffect;
  spec.immediate = kArrives | (drops ? kDrops : 0);
  bool expects = query.take("expect_tx");
  bool no_complete = query.take("noComplete");
  bool ordered = take_order_and_scope(query, {"release", "relaxed"}, spec);
  bool is_remote = query.has("shared::cluster");
  bool has_state = query.num_operands() > 0 && !query.is(0, Operand::Kind::kMemory) &&
                   !query.is(0, Operand::Kind::kVariable);
  size_t address = has_state ? 1 : 0;
  if (has_state) add_plain(spec, 0, AluPlace::kD, Type::kB64, true);
  if (is_remote && has_state && !query.is(0, Operand::Kind::kSink)) {
    return query.refuse("an arrival in .shared::cluster has no state");
  }
  add_barrier_address(query, spec, address);
  size_t operands = query.num_operands();
  bool has_value = operands > address + 1;
  if (expects) spec.immediate |= kHasBytes;
  if (!expects && has_value) spec.immediate |= kHasCount;
  if (no_complete) spec.immediate |= kNoComplete;
  bool complete = (!expects && !no_complete) || has_value;
  if (query.take("b64") && ordered && complete && !(expects && no_complete) &&
      !(no_complete && is_remote)) {
    spec.fn = update_op;
  }
  if (has_value) add_listed(spec, address + 1, Type::kU32, false);
  return query.finish(std::move(spec), has_value ? address + 2 : address + 1);
}

std::optional<Result<OpSpec>> find_wait(OpQuery& query, bool may_suspend) {
  OpSpec spec;
  spec.flags = kOpOrdered | kOpWaits;
  bool by_parity = query.take("parity");
  bool ordered = take_order_and_scope(query, {"acquire", "relaxed"}, spec);
  if (query.has("shared::cluster")) return query.refuse_modifiers();
  add_plain(spec, 0, AluPlace::kD, Type::kPred, true);
  add_barrier_address(query, spec, 1);
  if (query.take("b64") && ordered) spec.fn = by_parity ? wait_op<true> : wait_op<false>;
  add_listed(spec, 2, by_parity ? Type::kU32 : Type::kB64, false);
  // A wait that says how long it may be suspended may return at any time before that, too.
  bool has_hint = may_suspend && query.num_operands() == 4;
  if (has_hint) add_listed(spec, 3, Type::kU32, false);
  return query.finish(std::move(spec), has_hint ? 4 : 3);
}

std::optional<Result<OpSpec>> find_pending_count(OpQuery& query) {
  OpSpec spec;
  spec.flags = kOpPure;
  if (query.take("b64")) spec.fn = lane_op1<PendingCount, uint32_t, uint64_t>;
  add_plain(spec, 0, AluPlace::kD, Type::kU32, true);
  add_plain(spec, 1, AluPlace::kA, Type::kB64);
  return query.finish(std::move(spec), 2);
}

std::optional<Result<OpSpec>> find_mbarrier(OpQuery& query) {
  switch (query.take_one({"init", "inval", "arrive", "arrive_drop", "expect_tx", "complete_tx",
                          "test_wait", "try_wait", "pending_count"})) {
    case 0:
      return find_plain(query, true);
    case 1:
      return find_plain(query, false);
    case 2:
      return find_arrive(query, false);
    case 3:
      return find_arrive(query, true);
    case 4:
      return find_bytes(query, false);
    case 5:
      return find_bytes(query, true);
    case 6:
      return find_wait(query, false);
    case 7:
      return find_wait(query, true);
    case 8:
      return find_pending_count(query);
    default:
      return query.refuse_modifiers();
  }
}

/// cp.async.mbarrier.arrive; other forms of cp are those of async_ops.cc and bulk_ops.cc.
std::optional<Result<OpSpec>> find_copies_arrive(OpQuery& query) {
  if (!query.has("mbarrier")) return std::nullopt;
  bool known = query.take("async") && query.take("mbarrier") && query.take("arrive");
  OpSpec spec;
  spec.flags = kOpOrdered | kOpSideEffect;
  bool no_increment = query.take("noinc");
  if (query.has("shared::cluster")) return query.refuse_modifiers();
  add_barrier_address(query, spec, 0);
  if (query.take("b64") && known) {
    spec.fn = no_increment ? copies_arrive_op<false> : copies_arrive_op<true>;
  }
  return query.finish(std::move(spec), 1);
}

constexpr OpEntry kEntries[] = {{"mbarrier", find_mbarrier}, {"cp", find_copies_arrive}};

}  // namespace

std::span<const OpEntry> mbarrier_entries() { return kEntries; }

}  // namespace cb::sim
