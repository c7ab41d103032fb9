// find_warp_op, and shfl, vote, match, redux, elect and activemask.

#include "simulator/exec/warp_ops_members.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <functional>

#include "simulator/exec/lane_ops.h"

namespace cb::sim {

using ptx::Operand;
using ptx::Type;

bool check_members(Context& c, const MicroOp* op, const Members& members) {
  int lane = members.stranger(c.mask);
  if (lane < 0) return true;
  fault(c, op, Finding::Kind::kIllegalInstruction, lane,
        fmt::format("lane {} is not in its member mask {:#x}", lane, members.of(lane)));
  return false;
}

namespace {

void set_lanes(uint32_t* result, uint32_t lanes, uint32_t value) {
  for (; lanes != 0; lanes &= lanes - 1) result[std::countr_zero(lanes)] = value;
}

template <typename T>
uint32_t lanes_equal_to(const T* values, T value, uint32_t lanes) {
  return lanes & pack_lane_bits([=](int i) { return values[i] == value; });
}

/// Writes the active lanes. Most results are the same in all of them, and a uniform register makes
/// the rest of the kernel cheap.
void write_words(Context& c, Slot slot, const uint32_t* result) {
  if (slot.index == kNoSlot) return;
  uint32_t first = result[std::countr_zero(c.mask)];
  if (lanes_equal_to(result, first, c.mask) == c.mask) {
    write_uniform<uint32_t>(c, slot, first);
  } else {
    write_lanes<uint32_t>(c, slot, [=](int i) { return result[i]; });
  }
}

/// Takes the type, which comes last.
Type take_last_type(OpQuery& query) {
  Type type = query.last_type();
  if (type != Type::kNone) query.take(ptx::name_of(type));
  return type;
}

enum ShuffleMode : uint8_t { kIdx, kUp, kDown, kBfly };
/// Bit of MicroOp::aux of shfl: the member mask is the operation's list. Else it is in the upper
/// half of `immediate`.
constexpr uint8_t kMaskInList = 1;

/// The lane that lane `lane` reads from, whether or not it is in range, as the PTX manual has it.
template <ShuffleMode mode>
inline int shuffle_source(int lane, int b, int segment) {
  if constexpr (mode == kUp) return lane - b;
  if constexpr (mode == kDown) return lane + b;
  if constexpr (mode == kBfly) return lane ^ b;
  return (lane & segment) | (b & ~segment);
}

template <ShuffleMode mode>
const MicroOp* shuffle_op(Context& c, const MicroOp* op) {
  bool listed = (op->aux & kMaskInList) != 0;
  Members members = listed ? Members(c, c.code->lists[op->list])
                           : Members(static_cast<uint32_t>(op->immediate >> 32));
  if (!gather(c, op, members)) return nullptr;
  alignas(64) uint32_t room_a[kLanes], room_b[kLanes], room_c[kLanes], result[kLanes];
  const uint32_t* value = read_lanes<uint32_t>(c, op->a, room_a);
  const uint32_t* b = read_lanes<uint32_t>(c, op->b, room_b);
  const uint32_t* clamp = read_lanes<uint32_t>(c, op->c, room_c);
  alignas(64) int from[kLanes];
  alignas(64) int in_range[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    int segment = static_cast<int>(clamp[i] >> 8 & 31);
    int last = (i & segment) | (static_cast<int>(clamp[i] & 31) & ~segment);
    int source = shuffle_source<mode>(i, static_cast<int>(b[i] & 31), segment);
    in_range[i] = mode == kUp ? source >= last : source <= last;
    from[i] = in_range[i] != 0 ? source : i;
  }
  for (int i = 0; i < kLanes; ++i) result[i] = value[from[i]];
  write_predicate(c, pair_index(op), pack_lane_bits([&](int i) { return in_range[i] != 0; }));
  write_words(c, op->d, result);
  return op + 1;
}

/// The predicate destination of `d|p`, whose index is in bits 16 to 31 of `immediate`.
void add_pair(OpQuery& query, OpSpec& spec, Type type) {
  if (query.is(0, Operand::Kind::kPair) && query.operand(0).elements.size() == 2) {
    add_plain(spec, 0, AluPlace::kD, type, true, 0);
    add_plain(spec, 0, AluPlace::kPair, Type::kPred, true, 1);
    return;
  }
  spec.immediate |= uint64_t{kNoSlot} << 16;
  add_plain(spec, 0, AluPlace::kD, type, true);
}

std::optional<Result<OpSpec>> find_shuffle(OpQuery& query) {
  if (!query.take("sync")) return query.refuse("shfl without .sync does not exist on sm_90");
  int mode = query.take_one({"idx", "up", "down", "bfly"});
  bool has_type = query.take("b32");
  OpSpec spec;
  constexpr OpFn kModes[] = {shuffle_op<kIdx>, shuffle_op<kUp>, shuffle_op<kDown>,
                             shuffle_op<kBfly>};
  if (mode >= 0 && has_type) spec.fn = kModes[mode];
  spec.flags = kOpBarrier;
  spec.latency_class = AluSpec::Class::kSpecialFunction;
  add_pair(query, spec, Type::kB32);
  add_plain(spec, 1, AluPlace::kA, Type::kB32);
  add_plain(spec, 2, AluPlace::kB, Type::kB32);
  add_plain(spec, 3, AluPlace::kC, Type::kB32);
  if (query.is(4, Operand::Kind::kImmediate)) {
    spec.immediate |= query.operand(4).bits << 32;
  } else {
    spec.aux |= kMaskInList;
    spec.flags |= kOpListSource;
    add_listed(spec, 4, Type::kB32, false);
  }
  return query.finish(std::move(spec), 5);
}

enum class Vote : uint8_t { kAll, kAny, kUniform };

/// The predicate operand in place kA.
uint32_t voted(const Context& c, const MicroOp* op) {
  return c.predicates[op->a.index] ^ ((op->aux & kNegatedA) != 0 ? kAllLanes : 0);
}

template <Vote kind>
const MicroOp* vote_op(Context& c, const MicroOp* op) {
  Members members(c, op->b);
  if (!gather(c, op, members)) return nullptr;
  uint32_t value = voted(c, op);
  uint32_t result = 0;
  members.for_each_set(c.mask, [&](uint32_t lanes) {
    bool all = (value & lanes) == lanes;
    bool any = (value & lanes) != 0;
    if (kind == Vote::kAll ? all : kind == Vote::kAny ? any : all || !any) result |= lanes;
  });
  write_predicate(c, op->d.index, result);
  return op + 1;
}

const MicroOp* ballot_op(Context& c, const MicroOp* op) {
  Members members(c, op->b);
  if (!gather(c, op, members)) return nullptr;
  uint32_t value = voted(c, op);
  alignas(64) uint32_t result[kLanes] = {};
  members.for_each_set(c.mask, [&](uint32_t lanes) { set_lanes(result, lanes, value & lanes); });
  write_words(c, op->d, result);
  return op + 1;
}

std::optional<Result<OpSpec>> find_vote(OpQuery& query) {
  if (!query.take("sync")) return query.refuse("vote without .sync does not exist on sm_90");
  OpSpec spec;
  bool ballot = query.take("ballot");
  if (ballot) {
    if (query.take("b32")) spec.fn = ballot_op;
  } else {
    constexpr OpFn kVotes[] = {vote_op<Vote::kAll>, vote_op<Vote::kAny>, vote_op<Vote::kUniform>};
    int kind = query.take_one({"all", "any", "uni"});
    if (kind >= 0 && query.take("pred")) spec.fn = kVotes[kind];
  }
  spec.flags = kOpBarrier;
  add_plain(spec, 0, AluPlace::kD, ballot ? Type::kB32 : Type::kPred, true);
  add_plain(spec, 1, AluPlace::kA, Type::kPred);
  add_plain(spec, 2, AluPlace::kB, Type::kB32);
  return query.finish(std::move(spec), 3);
}

template <typename T>
const MicroOp* match_any_op(Context& c, const MicroOp* op) {
  Members members(c, op->b);
  if (!gather(c, op, members)) return nullptr;
  alignas(64) T room[kLanes];
  const T* value = read_lanes<T>(c, op->a, room);
  alignas(64) uint32_t result[kLanes] = {};
  members.for_each_set(c.mask, [&](uint32_t lanes) {
    while (lanes != 0) {
      uint32_t equal = lanes_equal_to(value, value[std::countr_zero(lanes)], lanes);
      set_lanes(result, equal, equal);
      lanes &= ~equal;
    }
  });
  write_words(c, op->d, result);
  return op + 1;
}

template <typename T>
const MicroOp* match_all_op(Context& c, const MicroOp* op) {
  Members members(c, op->b);
  if (!gather(c, op, members)) return nullptr;
  alignas(64) T room[kLanes];
  const T* value = read_lanes<T>(c, op->a, room);
  alignas(64) uint32_t result[kLanes] = {};
  uint32_t matched = 0;
  members.for_each_set(c.mask, [&](uint32_t lanes) {
    if (lanes_equal_to(value, value[std::countr_zero(lanes)], lanes) != lanes) return;
    set_lanes(result, lanes, lanes);
    matched |= lanes;
  });
  write_predicate(c, pair_index(op), matched);
  write_words(c, op->d, result);
  return op + 1;
}

std::optional<Result<OpSpec>> find_match(OpQuery& query) {
  int kind = query.take_one({"any", "all"});
  bool sync = query.take("sync");
  Type type = take_last_type(query);
  OpSpec spec;
  if (sync && type == Type::kB32) {
    spec.fn = kind == 0 ? match_any_op<uint32_t> : kind == 1 ? match_all_op<uint32_t> : nullptr;
  } else if (sync && type == Type::kB64) {
    spec.fn = kind == 0 ? match_any_op<uint64_t> : kind == 1 ? match_all_op<uint64_t> : nullptr;
  }
  spec.flags = kOpBarrier;
  spec.latency_class = AluSpec::Class::kSpecialFunction;
  if (kind == 0 && query.is(0, Operand::Kind::kPair)) {
    return query.refuse("match.any has no predicate result");
  }
  add_pair(query, spec, Type::kB32);
  add_plain(spec, 1, AluPlace::kA, type);
  add_plain(spec, 2, AluPlace::kB, Type::kB32);
  return query.finish(std::move(spec), 3);
}

struct Add {
  template <typename T>
  T operator()(T a, T b) const {
    return static_cast<T>(a + b);
  }
};
struct Min {
  template <typename T>
  T operator()(T a, T b) const {
    return std::min(a, b);
  }
};
struct Max {
  template <typename T>
  T operator()(T a, T b) const {
    return std::max(a, b);
  }
};

template <typename F, typename T>
const MicroOp* redux_op(Context& c, const MicroOp* op) {
  Members members(c, op->b);
  if (!gather(c, op, members)) return nullptr;
  alignas(64) T room[kLanes];
  const T* value = read_lanes<T>(c, op->a, room);
  alignas(64) uint32_t result[kLanes] = {};
  members.for_each_set(c.mask, [&](uint32_t lanes) {
    T sum = value[std::countr_zero(lanes)];
    for (uint32_t left = lanes & (lanes - 1); left != 0; left &= left - 1) {
      sum = F{}(sum, value[std::countr_zero(left)]);
    }
    set_lanes(result, lanes, static_cast<uint32_t>(sum));
  });
  write_words(c, op->d, result);
  return op + 1;
}

OpFn redux_handler(int operation, Type type) {
  if (type == Type::kB32) {
    constexpr OpFn kBitwise[] = {redux_op<std::bit_and<>, uint32_t>,
                                 redux_op<std::bit_or<>, uint32_t>,
                                 redux_op<std::bit_xor<>, uint32_t>};
    return operation >= 3 ? kBitwise[operation - 3] : nullptr;
  }
  if (type != Type::kS32 && type != Type::kU32) return nullptr;
  constexpr OpFn kUnsigned[] = {redux_op<Add, uint32_t>, redux_op<Min, uint32_t>,
                                redux_op<Max, uint32_t>};
  constexpr OpFn kSigned[] = {redux_op<Add, int32_t>, redux_op<Min, int32_t>,
                              redux_op<Max, int32_t>};
  if (operation < 0 || operation > 2) return nullptr;
  return type == Type::kS32 ? kSigned[operation] : kUnsigned[operation];
}

std::optional<Result<OpSpec>> find_redux(OpQuery& query) {
  bool sync = query.take("sync");
  int operation = query.take_one({"add", "min", "max", "and", "or", "xor"});
  Type type = take_last_type(query);
  if (type == Type::kF32) return query.refuse("redux of .f32 does not exist on sm_90");
  OpSpec spec;
  if (sync) spec.fn = redux_handler(operation, type);
  spec.flags = kOpBarrier;
  spec.latency_class = AluSpec::Class::kSpecialFunction;
  add_plain(spec, 0, AluPlace::kD, type, true);
  add_plain(spec, 1, AluPlace::kA, type);
  add_plain(spec, 2, AluPlace::kB, Type::kB32);
  return query.finish(std::move(spec), 3);
}

const MicroOp* activemask_op(Context& c, const MicroOp* op) {
  write_uniform<uint32_t>(c, op->d, c.mask);
  return op + 1;
}

std::optional<Result<OpSpec>> find_activemask(OpQuery& query) {
  OpSpec spec;
  if (query.take("b32")) spec.fn = activemask_op;
  add_plain(spec, 0, AluPlace::kD, Type::kB32, true);
  return query.finish(std::move(spec), 1);
}

/// The lowest member leads.
const MicroOp* elect_op(Context& c, const MicroOp* op) {
  Members members(c, op->b);
  if (!gather(c, op, members)) return nullptr;
  alignas(64) uint32_t result[kLanes] = {};
  uint32_t leaders = 0;
  members.for_each_set(c.mask, [&](uint32_t lanes) {
    set_lanes(result, lanes, static_cast<uint32_t>(std::countr_zero(lanes)));
    leaders |= lanes & -lanes;
  });
  write_predicate(c, pair_index(op), leaders);
  write_words(c, op->d, result);
  return op + 1;
}

std::optional<Result<OpSpec>> find_elect(OpQuery& query) {
  OpSpec spec;
  if (query.take("sync")) spec.fn = elect_op;
  spec.flags = kOpBarrier;
  add_pair(query, spec, Type::kB32);
  add_plain(spec, 1, AluPlace::kB, Type::kB32);
  return query.finish(std::move(spec), 2);
}

constexpr OpEntry kEntries[] = {{"shfl", find_shuffle}, {"vote", find_vote},
                                {"match", find_match},  {"redux", find_redux},
                                {"elect", find_elect},  {"activemask", find_activemask}};

}  // namespace

std::span<const OpEntry> exchange_entries() { return kEntries; }

std::optional<Result<OpSpec>> find_warp_op(const ptx::Instruction& instruction,
                                           const OpContext& context) {
  const std::array families = {exchange_entries(), cluster_entries(), barrier_entries(),
                               clock_entries()};
  return find_in(families, instruction, context);
}

}  // namespace cb::sim
