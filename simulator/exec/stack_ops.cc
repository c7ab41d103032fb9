// stacksave, stackrestore and alloca: each lane's local memory has its frames at the bottom and
// what alloca took at the top. A function's return gives back what it took.

#include <fmt/format.h>

#include "simulator/exec/engine_port.h"
#include "simulator/exec/lanes.h"
#include "simulator/exec/machine.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

constexpr uint64_t kDefaultAlign = 8;

LaneStack& stack_of(Context& c) {
  if (c.warp->stack == nullptr) {
    c.warp->stack = std::make_unique<LaneStack>();
    c.warp->stack->fill(static_cast<uint32_t>(c.local_lane_bytes));
  }
  return *c.warp->stack;
}

/// Where the frame of the lanes ends, and so the room for alloca.
uint64_t end_of_frame(const Context& c) {
  return uint64_t{c.frame->local_offset} + c.frame->code->local_bytes;
}

template <typename T>
const MicroOp* stacksave_op(Context& c, const MicroOp* op) {
  const LaneStack& stack = stack_of(c);
  write_lanes<T>(c, op->d, [&](int i) { return T{stack[static_cast<size_t>(i)]}; });
  return op + 1;
}

template <typename T>
const MicroOp* stackrestore_op(Context& c, const MicroOp* op) {
  alignas(64) T room[kLanes];
  const T* tops = read_lanes<T>(c, op->a, room);
  LaneStack& stack = stack_of(c);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    auto lane = static_cast<size_t>(std::countr_zero(left));
    // Only what stacksave gave earlier, when less was taken.
    if (tops[lane] > c.local_lane_bytes || tops[lane] < stack[lane]) {
      return fault(c, op, Finding::Kind::kIllegalInstruction, static_cast<int>(lane),
                   fmt::format("{:#x} is no state of the stack that stacksave returned",
                               static_cast<uint64_t>(tops[lane])));
    }
    stack[lane] = static_cast<uint32_t>(tops[lane]);
  }
  return op + 1;
}

template <typename T>
const MicroOp* alloca_op(Context& c, const MicroOp* op) {
  alignas(64) T room[kLanes];
  const T* sizes = read_lanes<T>(c, op->a, room);
  LaneStack& stack = stack_of(c);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    auto lane = static_cast<size_t>(std::countr_zero(left));
    uint64_t top = stack[lane], bytes = sizes[lane];
    uint64_t begin = bytes > top ? 0 : (top - bytes) & ~(op->immediate - 1);
    if (bytes > top || begin < end_of_frame(c)) {
      return fault(c, op, Finding::Kind::kStackOverflow, static_cast<int>(lane),
                   fmt::format("alloca of {} bytes; {} of a thread's stack are free", bytes,
                               top - std::min(top, end_of_frame(c))));
    }
    stack[lane] = static_cast<uint32_t>(begin);
  }
  write_lanes<T>(c, op->d, [&](int i) { return T{stack[static_cast<size_t>(i)]}; });
  return op + 1;
}

/// .u32 or .u64; kNone for others.
Type take_width(OpQuery& query) {
  if (query.take("u32")) return Type::kU32;
  return query.take("u64") ? Type::kU64 : Type::kNone;
}

std::optional<Result<OpSpec>> find_stacksave(OpQuery& query) {
  Type type = take_width(query);
  OpSpec spec;
  if (type == Type::kU32) spec.fn = stacksave_op<uint32_t>;
  if (type == Type::kU64) spec.fn = stacksave_op<uint64_t>;
  spec.flags = kOpSideEffect;
  add_plain(spec, 0, AluPlace::kD, type, true);
  return query.finish(std::move(spec), 1);
}

std::optional<Result<OpSpec>> find_stackrestore(OpQuery& query) {
  Type type = take_width(query);
  OpSpec spec;
  if (type == Type::kU32) spec.fn = stackrestore_op<uint32_t>;
  if (type == Type::kU64) spec.fn = stackrestore_op<uint64_t>;
  spec.flags = kOpSideEffect;
  add_plain(spec, 0, AluPlace::kA, type);
  return query.finish(std::move(spec), 1);
}

std::optional<Result<OpSpec>> find_alloca(OpQuery& query) {
  Type type = take_width(query);
  OpSpec spec;
  if (type == Type::kU32) spec.fn = alloca_op<uint32_t>;
  if (type == Type::kU64) spec.fn = alloca_op<uint64_t>;
  spec.flags = kOpSideEffect;
  spec.immediate = kDefaultAlign;
  size_t operands = query.num_operands();
  if (operands == 3) {
    uint64_t align = query.operand(2).bits;
    if (!query.is(2, Operand::Kind::kImmediate) || !std::has_single_bit(align) || align > 4096) {
      return query.refuse("an alignment is a power of two up to 4096");
    }
    spec.immediate = std::max(align, uint64_t{1});
  }
  add_plain(spec, 0, AluPlace::kD, type, true);
  add_plain(spec, 1, AluPlace::kA, type);
  return query.finish(std::move(spec), operands == 3 ? 3 : 2);
}

constexpr OpEntry kEntries[] = {
    {"stacksave", find_stacksave}, {"stackrestore", find_stackrestore}, {"alloca", find_alloca}};

}  // namespace

std::span<const OpEntry> stack_entries() { return kEntries; }

}  // namespace cb::sim
