// atom and red. The lanes take their turns in the order of their numbers, at the moment at which
// the operation reaches memory.

#include "simulator/exec/atomic_functions.h"
#include "simulator/exec/engine_port.h"
#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

/// After an operation on memory: who waits for it wakes, and a wait loop learns that it is one only
/// if nothing changed.
void finish_update(Context& c, const LaneAddresses& at, uint32_t bytes, bool changed) {
  if (changed) {
    if (c.recorder != nullptr) c.recorder->spoil();
    note_write(c, at.lo, at.hi);
  } else {
    report_reads(c, at, bytes);
  }
}

template <typename F, typename T>
[[gnu::noinline]] void update_lanes(Context& c, const MicroOp* op, const LaneAddresses& at) {
  alignas(64) T room[kLanes], room_extra[kLanes];
  const T* operand = read_lanes<T>(c, op->b, room);
  const T* extra = operand;
  if constexpr (std::is_same_v<F, AtomicCompare<T>>) extra = read_lanes<T>(c, op->c, room_extra);
  alignas(64) T old[kLanes];
  bool changed = false;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    old[lane] = update_at<F>(at.at(lane), operand[lane], extra[lane], changed);
  }
  if ((op->flags & kOpLoad) != 0 && op->d.index != kNoSlot) {
    write_lanes<T>(c, op->d, [&](int i) { return old[i]; });
  }
  finish_update(c, at, sizeof(T), changed);
}

MemoryAccess::Kind kind_of(const MicroOp* op) {
  return (op->flags & kOpLoad) != 0 ? MemoryAccess::Kind::kAtomic : MemoryAccess::Kind::kReduction;
}

template <AccessSpace space, typename F, typename T>
const MicroOp* atomic_op(Context& c, const MicroOp* op) {
  LaneAddresses at;
  if (!locate<space>(c, op, sizeof(T), true, at)) return nullptr;
  describe_access(c, op, at, sizeof(T), kind_of(op));
  update_lanes<F, T>(c, op, at);
  return op + 1;
}

/// .v2 to .v8: each element is an atomic of its own. The list has the results of atom, then the
/// operands.
template <typename F, typename T, unsigned N>
const MicroOp* atomic_list_op(Context& c, const MicroOp* op) {
  LaneAddresses at;
  if (!locate<AccessSpace::kGeneric>(c, op, N * sizeof(T), true, at)) return nullptr;
  describe_access(c, op, at, N * sizeof(T), kind_of(op));
  bool returns = (op->flags & kOpLoad) != 0;
  const Slot* list = list_of(c, op);
  const Slot* operands = returns ? list + N : list;
  alignas(64) T room[N][kLanes], old[N][kLanes];
  const T* operand[N];
  for (unsigned k = 0; k < N; ++k) {
    operand[k] = read_lanes<T>(c, operands[k], room[k]);
  }
  bool changed = false;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    for (unsigned k = 0; k < N; ++k) {
      old[k][lane] = update_at<F>(at.at(lane) + k * sizeof(T), operand[k][lane], T{0}, changed);
    }
  }
  for (unsigned k = 0; returns && k < N; ++k) {
    if (list[k].index != kNoSlot) write_lanes<T>(c, list[k], [&](int i) { return old[k][i]; });
  }
  finish_update(c, at, N * sizeof(T), changed);
  return op + 1;
}

struct alignas(16) Word128 {
  uint64_t half[2];
  bool operator==(const Word128&) const = default;
};

Word128 lane_128(Context& c, Slot slot, int lane) {
  if (!c.meta[slot.index].is_vector) return {};
  return vector_of<Word128>(c, slot)[lane];
}

/// exch and cas of .b128. No host process can see half of one: the lanes' order is the daemon's.
template <AccessSpace space, bool compares>
const MicroOp* atomic_128_op(Context& c, const MicroOp* op) {
  LaneAddresses at;
  if (!locate<space>(c, op, sizeof(Word128), true, at)) return nullptr;
  describe_access(c, op, at, sizeof(Word128), kind_of(op));
  Word128 old[kLanes];
  bool changed = false;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto* place = reinterpret_cast<Word128*>(at.at(lane));
    old[lane] = *place;
    Word128 operand = lane_128(c, op->b, lane);
    Word128 next = operand;
    if (compares) next = old[lane] == operand ? lane_128(c, op->c, lane) : old[lane];
    changed |= !(next == old[lane]);
    *place = next;
  }
  if (op->d.index != kNoSlot) {
    Meta& meta = c.meta[op->d.index];
    auto* lanes = vector_of<Word128>(c, op->d);
    if (!meta.is_vector) std::memset(lanes, 0, kLanes * sizeof(Word128));
    meta.is_vector = 1;
    for (uint32_t left = c.mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      lanes[lane] = old[lane];
    }
  }
  finish_update(c, at, sizeof(Word128), changed);
  return op + 1;
}

/// What the text asks for.
struct Atomic {
  std::string_view operation;
  Type type = Type::kNone;
  AccessSpace space = AccessSpace::kGeneric;
  unsigned elements = 1;
};

template <typename F, typename T>
OpFn handler_of(const Atomic& atomic) {
  if (atomic.elements == 1) {
    return atomic.space == AccessSpace::kShared ? atomic_op<AccessSpace::kShared, F, T>
                                                : atomic_op<AccessSpace::kGeneric, F, T>;
  }
  return nullptr;
}

/// For the types that have vector forms.
template <typename F, typename T>
OpFn list_handler_of(const Atomic& atomic) {
  switch (atomic.elements) {
    case 1:
      return handler_of<F, T>(atomic);
    case 2:
      return atomic_list_op<F, T, 2>;
    case 4:
      return atomic_list_op<F, T, 4>;
    case 8:
      return sizeof(T) == 2 ? atomic_list_op<F, T, 8> : nullptr;
    default:
      return nullptr;
  }
}

template <typename T>
OpFn bits_handler(const Atomic& atomic) {
  if (atomic.operation == "and") return handler_of<AtomicAnd<T>, T>(atomic);
  if (atomic.operation == "or") return handler_of<AtomicOr<T>, T>(atomic);
  if (atomic.operation == "xor") return handler_of<AtomicXor<T>, T>(atomic);
  if (atomic.operation == "exch") return handler_of<AtomicExchange<T>, T>(atomic);
  if (atomic.operation == "cas") return handler_of<AtomicCompare<T>, T>(atomic);
  return nullptr;
}

template <typename T, typename Number>
OpFn number_handler(const Atomic& atomic) {
  if (atomic.operation == "add") return handler_of<AtomicAdd<T>, T>(atomic);
  if (atomic.operation == "min") return handler_of<AtomicMin<T, Number>, T>(atomic);
  if (atomic.operation == "max") return handler_of<AtomicMax<T, Number>, T>(atomic);
  // Older compilers write exch and cas with a type of number.
  if (atomic.operation == "exch" || atomic.operation == "cas") return bits_handler<T>(atomic);
  return nullptr;
}

template <typename Half>
OpFn half_handler(const Atomic& atomic, bool packed) {
  if (packed) {
    if (atomic.operation == "add") return list_handler_of<OnPairs<HalfAdd<Half>>, uint32_t>(atomic);
    if (atomic.operation == "min") return list_handler_of<OnPairs<HalfMin<Half>>, uint32_t>(atomic);
    if (atomic.operation == "max") return list_handler_of<OnPairs<HalfMax<Half>>, uint32_t>(atomic);
    return nullptr;
  }
  if (atomic.operation == "add") return list_handler_of<HalfAdd<Half>, uint16_t>(atomic);
  if (atomic.operation == "min") return list_handler_of<HalfMin<Half>, uint16_t>(atomic);
  if (atomic.operation == "max") return list_handler_of<HalfMax<Half>, uint16_t>(atomic);
  return nullptr;
}

OpFn float_handler(const Atomic& atomic) {
  if (atomic.operation == "exch") return handler_of<AtomicExchange<uint32_t>, uint32_t>(atomic);
  if (atomic.operation != "add") return nullptr;
  return atomic.space == AccessSpace::kShared
             ? handler_of<AtomicAddF32<false>, uint32_t>(atomic)
             : list_handler_of<AtomicAddF32<true>, uint32_t>(atomic);
}

OpFn word_128_handler(const Atomic& atomic) {
  bool compares = atomic.operation == "cas";
  if (atomic.elements != 1 || (!compares && atomic.operation != "exch")) return nullptr;
  if (atomic.space == AccessSpace::kShared) {
    return compares ? atomic_128_op<AccessSpace::kShared, true>
                    : atomic_128_op<AccessSpace::kShared, false>;
  }
  return compares ? atomic_128_op<AccessSpace::kGeneric, true>
                  : atomic_128_op<AccessSpace::kGeneric, false>;
}

OpFn find_handler(const Atomic& atomic) {
  switch (atomic.type) {
    case Type::kB16:
      return atomic.operation == "cas" ? handler_of<AtomicCompare<uint16_t>, uint16_t>(atomic)
                                       : nullptr;
    case Type::kB32:
      return bits_handler<uint32_t>(atomic);
    case Type::kB64:
      return bits_handler<uint64_t>(atomic);
    case Type::kB128:
      return word_128_handler(atomic);
    case Type::kU32:
      if (atomic.operation == "inc") return handler_of<AtomicIncrement<uint32_t>, uint32_t>(atomic);
      if (atomic.operation == "dec") return handler_of<AtomicDecrement<uint32_t>, uint32_t>(atomic);
      return number_handler<uint32_t, uint32_t>(atomic);
    case Type::kS32:
      return number_handler<uint32_t, int32_t>(atomic);
    case Type::kU64:
      return number_handler<uint64_t, uint64_t>(atomic);
    case Type::kS64:
      return number_handler<uint64_t, int64_t>(atomic);
    case Type::kF32:
      return float_handler(atomic);
    case Type::kF64:
      return atomic.operation == "add" ? handler_of<AtomicAddF64, uint64_t>(atomic) : nullptr;
    case Type::kF16:
    case Type::kF16x2:
      return half_handler<HalfF16>(atomic, atomic.type == Type::kF16x2);
    case Type::kBf16:
    case Type::kBf16x2:
      return half_handler<HalfBf16>(atomic, atomic.type == Type::kBf16x2);
    default:
      return nullptr;
  }
}

bool is_half(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2;
}

/// Adds the destination, the address and the data operands; returns how many operands there are.
Result<size_t> add_operands(OpQuery& query, OpSpec& spec, const Atomic& atomic, bool returns) {
  size_t address = returns ? 1 : 0;
  size_t data = address + 1;
  if (returns) {
    bool discards = query.is(0, Operand::Kind::kSink);
    if (!discards) {
      auto width = data_width(query, 0, atomic.type, atomic.elements);
      if (!width) return tl::unexpected(width.error());
    }
    add_data(spec, 0, atomic.type, discards ? 1 : atomic.elements, true);
    if (discards && atomic.elements > 1) return query.refuse("a vector without results is red");
  }
  add_address(query, spec, address);
  auto width = data_width(query, data, atomic.type, atomic.elements);
  if (!width) return tl::unexpected(width.error());
  add_data(spec, data, atomic.type, atomic.elements, false);
  if (atomic.elements > 1) spec.flags |= kOpListSource;
  if (atomic.operation == "cas") {
    add_plain(spec, data + 1, AluPlace::kC, atomic.type);
    return data + 2;
  }
  return data + 1;
}

std::optional<Result<OpSpec>> find_atomic(OpQuery& query) {
  if (query.take("async")) return query.refuse("asynchronous reductions are not supported");
  bool returns = query.opcode() == "atom";
  auto order = take_order(query, MemoryOrder::kRelaxed);
  if (!order) return tl::unexpected(order.error());
  if (*order == MemoryOrder::kWeak || *order == MemoryOrder::kVolatile) {
    return query.refuse("an atomic operation is never weak or volatile");
  }
  auto space = take_space(query, returns ? 1 : 0);
  if (!space) return tl::unexpected(space.error());
  if (*space != AccessSpace::kGeneric && *space != AccessSpace::kShared) {
    return query.refuse("atomics are for global and shared memory");
  }
  constexpr std::string_view kOperations[] = {"add", "min",  "max", "and", "or",
                                              "xor", "exch", "cas", "inc", "dec"};
  Atomic atomic{.space = *space};
  for (std::string_view operation : kOperations) {
    if (query.take(operation)) {
      atomic.operation = operation;
      break;
    }
  }
  if (!returns && (atomic.operation == "exch" || atomic.operation == "cas")) {
    return query.refuse("red has no such operation");
  }
  bool has_policy = query.take("L2::cache_hint");
  atomic.elements = take_elements(query);
  atomic.type = take_data_type(query);
  if (is_half(atomic.type)) query.take("noftz");
  OpSpec spec;
  spec.fn = find_handler(atomic);
  bool is_shared = *space == AccessSpace::kShared || window_of(query) != 0;
  if (atomic.elements > 1 && is_shared) spec.fn = nullptr;
  spec.aux = kStrongAccess | window_of(query);
  spec.flags = kOpOrdered | kOpMemory;
  spec.flags |= returns ? kOpWaits | kOpLoad : kOpSideEffect;
  if (acquires(*order)) spec.flags |= kOpAcquire;
  if (releases(*order)) spec.flags |= kOpRelease;
  spec.has_site = *space == AccessSpace::kGeneric;
  if (spec.fn == nullptr) return query.refuse_modifiers();
  auto count = add_operands(query, spec, atomic, returns);
  if (!count) return tl::unexpected(count.error());
  return query.finish(std::move(spec), *count + (has_policy ? 1 : 0));
}

constexpr OpEntry kEntries[] = {{"atom", find_atomic}, {"red", find_atomic}};

}  // namespace

std::span<const OpEntry> atomic_entries() { return kEntries; }

}  // namespace cb::sim
