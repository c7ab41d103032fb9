// Barriers of the block and of the warp, waiting for a time, and the clocks.

#include <fmt/format.h>

#include "simulator/exec/lane_ops.h"
#include "simulator/exec/warp_ops_members.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

/// Bits of MicroOp::aux of barriers. The number is in place kA, the threads in kB, the predicate of
/// a reduction in place kCondition.
constexpr uint8_t kHasCount = 1;
constexpr uint32_t kBarriers = 16;

/// The operand's value, which all active lanes must agree on.
bool read_equal(Context& c, const MicroOp* op, Slot slot, uint32_t& value) {
  const Meta& meta = c.meta[slot.index];
  if (meta.uniform()) {
    value = static_cast<uint32_t>(meta.base);
    return true;
  }
  alignas(64) uint32_t room[kLanes];
  const uint32_t* values = read_lanes<uint32_t>(c, slot, room);
  value = values[std::countr_zero(c.mask)];
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    if (values[lane] == value) continue;
    fault(c, op, Finding::Kind::kUnsupported, lane,
          "lanes of one warp name different barriers or numbers of threads");
    return false;
  }
  return true;
}

bool read_barrier(Context& c, const MicroOp* op, uint32_t& number, uint32_t& threads) {
  threads = 0;
  if (!read_equal(c, op, op->a, number)) return false;
  int lane = std::countr_zero(c.mask);
  if (number >= kBarriers) {
    fault(c, op, Finding::Kind::kIllegalInstruction, lane,
          fmt::format("barrier {}: a block has barriers 0 to {}", number, kBarriers - 1));
    return false;
  }
  if ((op->aux & kHasCount) == 0) return true;
  if (!read_equal(c, op, op->b, threads)) return false;
  if (threads == 0 || threads % kLanes != 0) {
    fault(c, op, Finding::Kind::kIllegalInstruction, lane,
          fmt::format("barrier {} for {} threads: not a positive multiple of {}", number, threads,
                      kLanes));
    return false;
  }
  return true;
}

template <BarrierKind kind>
const MicroOp* barrier_op(Context& c, const MicroOp* op) {
  uint32_t number, threads;
  if (!read_barrier(c, op, number, threads)) return nullptr;
  return block_barrier(c, op, number, threads, kind) ? op + 1 : nullptr;
}

enum Reduction : uint8_t { kAnd, kOr, kCount };

template <Reduction reduction>
const MicroOp* barrier_reduce_op(Context& c, const MicroOp* op) {
  uint32_t number, threads;
  if (!read_barrier(c, op, number, threads)) return nullptr;
  if (!block_barrier(c, op, number, threads, BarrierKind::kReduce, read_condition(c, op))) {
    return nullptr;
  }
  uint32_t result = c.block->barrier_results[number][reduction];
  if constexpr (reduction == kCount) {
    if (op->d.index != kNoSlot) write_uniform<uint32_t>(c, op->d, result);
  } else {
    write_predicate(c, op->d.index, result);
  }
  return op + 1;
}

const MicroOp* warp_barrier_op(Context& c, const MicroOp* op) {
  Members members(c, op->a);
  if (!check_members(c, op, members)) return nullptr;
  return sync_lanes(c, op, members.all()) ? op + 1 : nullptr;
}

std::optional<Result<OpSpec>> find_warp_barrier(OpQuery& query) {
  OpSpec spec;
  if (query.take("sync")) spec.fn = warp_barrier_op;
  spec.flags = kOpBarrier | kOpSideEffect;
  add_plain(spec, 0, AluPlace::kA, Type::kB32);
  return query.finish(std::move(spec), 1);
}

/// Adds the number and, where there is one more operand than `others` and it, the threads.
size_t add_barrier_operands(const OpQuery& query, OpSpec& spec, size_t first, size_t others) {
  add_plain(spec, first, AluPlace::kA, Type::kB32);
  if (query.num_operands() <= first + 1 + others) return first + 1;
  spec.aux |= kHasCount;
  add_plain(spec, first + 1, AluPlace::kB, Type::kB32);
  return first + 2;
}

std::optional<Result<OpSpec>> find_barrier_reduction(OpQuery& query) {
  constexpr OpFn kReductions[] = {barrier_reduce_op<kAnd>, barrier_reduce_op<kOr>,
                                  barrier_reduce_op<kCount>};
  int operation = query.take_one({"and", "or", "popc"});
  query.take("aligned");
  bool counts = operation == kCount;
  bool has_type = query.take(counts ? "u32" : "pred");
  OpSpec spec;
  if (operation >= 0 && has_type) spec.fn = kReductions[operation];
  spec.flags = kOpBarrier | kOpSideEffect;
  add_plain(spec, 0, AluPlace::kD, counts ? Type::kU32 : Type::kPred, true);
  size_t next = add_barrier_operands(query, spec, 1, 1);
  add_plain(spec, next, AluPlace::kCondition, Type::kPred);
  return query.finish(std::move(spec), next + 1);
}

std::optional<Result<OpSpec>> find_barrier(OpQuery& query) {
  if (query.opcode() == "bar" && query.take("warp")) return find_warp_barrier(query);
  query.take("cta");
  if (query.take("red")) return find_barrier_reduction(query);
  int kind = query.take_one({"sync", "arrive"});
  query.take("aligned");
  OpSpec spec;
  if (kind == 0) spec.fn = barrier_op<BarrierKind::kSync>;
  if (kind == 1) spec.fn = barrier_op<BarrierKind::kArrive>;
  spec.flags = kOpBarrier | kOpSideEffect;
  size_t expected = add_barrier_operands(query, spec, 0, 0);
  if (kind == 1 && expected != 2) return query.refuse("the number of threads is missing");
  return query.finish(std::move(spec), expected);
}

constexpr OpEntry kBarrierEntries[] = {{"bar", find_barrier}, {"barrier", find_barrier}};

const MicroOp* nanosleep_op(Context& c, const MicroOp* op) {
  alignas(64) uint32_t room[kLanes];
  const uint32_t* ns = read_lanes<uint32_t>(c, op->a, room);
  uint32_t longest = 0;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    longest = std::max(longest, ns[std::countr_zero(left)]);
  }
  sleep_ns(c, longest);
  return op + 1;
}

std::optional<Result<OpSpec>> find_nanosleep(OpQuery& query) {
  OpSpec spec;
  if (query.take("u32")) spec.fn = nanosleep_op;
  spec.flags = kOpOrdered | kOpWaits;
  add_plain(spec, 0, AluPlace::kA, Type::kU32);
  return query.finish(std::move(spec), 1);
}

const MicroOp* setmaxnreg_op(Context& c, const MicroOp* op) {
  if (!gather_lanes(c, op, c.warp->live)) return nullptr;
  bool more = op->aux != 0;
  return change_registers(c, op, more, static_cast<uint32_t>(op->immediate)) ? op + 1 : nullptr;
}

std::optional<Result<OpSpec>> find_setmaxnreg(OpQuery& query) {
  OpSpec spec;
  int direction = query.take_one({"dec", "inc"});
  if (direction >= 0 && query.take("sync") && query.take("aligned") && query.take("u32")) {
    spec.fn = setmaxnreg_op;
  }
  spec.aux = direction == 1 ? 1 : 0;
  spec.flags = kOpBarrier | kOpSideEffect;
  bool is_constant = query.is(0, Operand::Kind::kImmediate);
  spec.immediate = is_constant ? query.operand(0).bits : 0;
  if (!is_constant || spec.immediate < 24 || spec.immediate > 256 || spec.immediate % 8 != 0) {
    return query.refuse("registers are a multiple of 8 from 24 to 256");
  }
  return query.finish(std::move(spec), 1);
}

enum class Clock : uint8_t { kCycles, kNanoseconds };

template <Clock clock, typename T, unsigned shift>
const MicroOp* clock_op(Context& c, const MicroOp* op) {
  if (c.recorder != nullptr) c.recorder->see_clock();
  uint64_t value = clock == Clock::kCycles ? clock_cycles(c) : global_timer_ns(c);
  write_uniform<T>(c, op->d, static_cast<T>(value >> shift));
  return op + 1;
}

struct ClockRegister {
  std::string_view name;
  unsigned bytes;
  OpFn fn;
};
constexpr ClockRegister kClocks[] = {
    {"%clock", 4, clock_op<Clock::kCycles, uint32_t, 0>},
    {"%clock_hi", 4, clock_op<Clock::kCycles, uint32_t, 32>},
    {"%clock64", 8, clock_op<Clock::kCycles, uint64_t, 0>},
    {"%globaltimer", 8, clock_op<Clock::kNanoseconds, uint64_t, 0>},
    {"%globaltimer_lo", 4, clock_op<Clock::kNanoseconds, uint32_t, 0>},
    {"%globaltimer_hi", 4, clock_op<Clock::kNanoseconds, uint32_t, 32>},
};

std::optional<Result<OpSpec>> find_clock(OpQuery& query) {
  if (!query.is(1, Operand::Kind::kSpecial)) return std::nullopt;
  for (const ClockRegister& clock : kClocks) {
    if (clock.name != query.operand(1).name) continue;
    Type type = query.last_type();
    if (type != Type::kNone) query.take(ptx::name_of(type));
    if (!is_integer(type) && !is_bits(type)) return query.refuse_modifiers();
    if (ptx::bytes_of(type) != clock.bytes) {
      return query.refuse(fmt::format("{} has {} bits", clock.name, 8 * clock.bytes));
    }
    OpSpec spec;
    spec.fn = clock.fn;
    spec.flags = kOpOrdered | kOpWaits;
    add_plain(spec, 0, AluPlace::kD, type, true);
    return query.finish(std::move(spec), 2);
  }
  return std::nullopt;
}

constexpr OpEntry kClockEntries[] = {
    {"mov", find_clock}, {"nanosleep", find_nanosleep}, {"setmaxnreg", find_setmaxnreg}};

}  // namespace

std::span<const OpEntry> barrier_entries() { return kBarrierEntries; }
std::span<const OpEntry> clock_entries() { return kClockEntries; }

}  // namespace cb::sim
