// multimem.ld_reduce, .st and .red: one address that stands for a copy on each of several devices.
//
// The bytes of all lanes are handled as one flat array, lane after lane, which is memory itself
// where the lanes are neighbours. The copies are combined in the order in which they were bound, so
// that the result depends on nothing else.

#include <fmt/format.h>

#include "simulator/exec/atomic_functions.h"
#include "simulator/exec/engine_port.h"
#include "simulator/exec/half_math.h"
#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Type;

constexpr uint32_t kMostBytes = 16;  ///< of a lane

/// The lanes' addresses in each copy.
struct Copies {
  LaneAddresses at;
  const Allocation* allocations[kLanes];

  /// Copies of the first active lane's allocation; others have as many or the fewest of theirs.
  size_t count(uint32_t mask) const { return of(std::countr_zero(mask)).members.size(); }
  const Allocation& of(int lane) const { return *allocations[lane]; }
  uint64_t address(int lane, size_t copy) const {
    const Allocation& allocation = of(lane);
    return allocation.members[copy] + (at.at(lane) - allocation.base);
  }
  /// Whether all lanes' bytes in a copy are one block.
  bool is_block(uint32_t mask, uint32_t bytes) const {
    if (at.is_vector || at.stride != static_cast<int64_t>(bytes) || mask != kAllLanes) return false;
    return allocations[0] == allocations[kLanes - 1];
  }
};

bool locate_copies(Context& c, const MicroOp* op, uint32_t bytes, bool write, Copies& copies) {
  if (!locate_multicast(c, op, bytes, write, copies.at, copies.allocations)) return false;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    if (copies.of(lane).members.size() == copies.count(c.mask)) continue;
    fault(c, op, Finding::Kind::kUnsupported, lane,
          "the lanes' multicast addresses stand for different numbers of copies",
          copies.at.at(lane), bytes, write);
    return false;
  }
  return true;
}

/// The lanes' bytes of one copy: memory itself, or gathered in `room`. Other lanes' bytes are 0.
const std::byte* read_copy(const Context& c, const Copies& copies, size_t copy, uint32_t bytes,
                           std::byte* room) {
  if (copies.is_block(c.mask, bytes)) {
    return reinterpret_cast<const std::byte*>(copies.address(0, copy));
  }
  if (c.mask != kAllLanes) std::memset(room, 0, kLanes * kMostBytes);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    std::memcpy(room + static_cast<uint32_t>(lane) * bytes,
                reinterpret_cast<const void*>(copies.address(lane, copy)), bytes);
  }
  return room;
}

/// Combines numbers of T by F; the sum is held as it is in memory.
template <typename F, typename T>
struct Plain {
  using Number = T;
  static void first(const std::byte* from, std::byte* sum, uint32_t bytes) {
    std::memcpy(sum, from, bytes);
  }
  static void add(const std::byte* from, std::byte* sum, uint32_t bytes) {
    T* to = reinterpret_cast<T*>(sum);
    for (uint32_t i = 0; i < bytes / sizeof(T); ++i) {
      T value;
      std::memcpy(&value, from + i * sizeof(T), sizeof(T));
      to[i] = F{}(to[i], value, T{0});
    }
  }
  static void last(std::byte*, uint32_t) {}
  static constexpr uint32_t kWidening = 1;
};

/// Sums of 16-bit numbers: in f32, eight at a time, rounded at the end (.acc::f32) or each time.
template <typename Format, bool at_end>
struct HalfSum {
  using Number = uint16_t;
  static constexpr uint32_t kWidening = 2;
  static V8f widened(const std::byte* from) {
    V8h halves;
    std::memcpy(&halves, from, sizeof halves);
    return Format::widen(halves);
  }
  static void first(const std::byte* from, std::byte* sum, uint32_t bytes) {
    auto* wide = reinterpret_cast<V8f*>(sum);
    for (uint32_t i = 0; i < bytes / 16; ++i) wide[i] = widened(from + i * 16);
  }
  static void add(const std::byte* from, std::byte* sum, uint32_t bytes) {
    auto* wide = reinterpret_cast<V8f*>(sum);
    for (uint32_t i = 0; i < bytes / 16; ++i) {
      wide[i] += widened(from + i * 16);
      if (!at_end) wide[i] = Format::widen(Format::narrow(wide[i]));
    }
  }
  static void last(std::byte* sum, uint32_t bytes) {
    auto* wide = reinterpret_cast<V8f*>(sum);
    for (uint32_t i = 0; i < bytes / 16; ++i) {
      V8h halves = Format::narrow(wide[i]);
      std::memcpy(sum + i * 16, &halves, sizeof halves);
    }
  }
};

/// Gives the registers their elements of the flat array.
template <typename E, unsigned N>
void write_elements(Context& c, const MicroOp* op, const std::byte* flat) {
  const Slot* slots = N == 1 ? &op->d : list_of(c, op);
  const E* elements = reinterpret_cast<const E*>(flat);
  for (unsigned k = 0; k < N; ++k) {
    if (slots[k].index == kNoSlot) continue;
    write_lanes<E>(c, slots[k], [=](int i) { return elements[static_cast<unsigned>(i) * N + k]; });
  }
}

template <typename Reduction, typename E, unsigned N>
const MicroOp* load_reduce_op(Context& c, const MicroOp* op) {
  constexpr uint32_t kBytes = N * sizeof(E);
  constexpr uint32_t kAll = kLanes * kBytes;
  Copies copies;
  if (!locate_copies(c, op, kBytes, false, copies)) return nullptr;
  describe_access(c, op, copies.at, kBytes, MemoryAccess::Kind::kLoad);
  alignas(64) std::byte sum[kAll * Reduction::kWidening];
  alignas(64) std::byte room[kLanes * kMostBytes];
  size_t count = copies.count(c.mask);
  for (size_t copy = 0; copy < count; ++copy) {
    const std::byte* from = read_copy(c, copies, copy, kBytes, room);
    if (copy == 0) {
      Reduction::first(from, sum, kAll);
    } else {
      Reduction::add(from, sum, kAll);
    }
  }
  Reduction::last(sum, kAll);
  if (c.recorder != nullptr) [[unlikely]] {
    for (uint32_t left = c.mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      for (size_t copy = 0; copy < count; ++copy) {
        c.recorder->read(copies.address(lane, copy), kBytes);
      }
      if (copies.at.uniform()) break;
    }
  }
  write_elements<E, N>(c, op, sum);
  return op + 1;
}

/// The lanes' data operands as a flat array.
template <typename E, unsigned N>
void read_elements(Context& c, const MicroOp* op, std::byte* flat) {
  const Slot* slots = N == 1 ? &op->b : list_of(c, op);
  E* elements = reinterpret_cast<E*>(flat);
  for (unsigned k = 0; k < N; ++k) {
    alignas(64) E room[kLanes];
    const E* values = read_lanes<E>(c, slots[k], room);
    for (unsigned i = 0; i < kLanes; ++i) elements[i * N + k] = values[i];
  }
}

/// Whoever waits for one of the copies may be woken.
void note_copies(Context& c, const Copies& copies, uint32_t bytes) {
  if (c.watch->num_watches == 0) return;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    for (size_t copy = 0; copy < copies.count(c.mask); ++copy) {
      uint64_t address = copies.address(lane, copy);
      wake_watchers(c, address, address + bytes);
    }
  }
}

template <typename E, unsigned N>
const MicroOp* multimem_store_op(Context& c, const MicroOp* op) {
  constexpr uint32_t kBytes = N * sizeof(E);
  Copies copies;
  if (!locate_copies(c, op, kBytes, true, copies)) return nullptr;
  describe_access(c, op, copies.at, kBytes, MemoryAccess::Kind::kStore);
  alignas(64) std::byte flat[kLanes * kBytes];
  read_elements<E, N>(c, op, flat);
  bool is_block = copies.is_block(c.mask, kBytes);
  for (size_t copy = 0; copy < copies.count(c.mask); ++copy) {
    if (is_block) {
      std::memcpy(reinterpret_cast<void*>(copies.address(0, copy)), flat, kLanes * kBytes);
      continue;
    }
    for (uint32_t left = c.mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      std::memcpy(reinterpret_cast<void*>(copies.address(lane, copy)),
                  flat + static_cast<uint32_t>(lane) * kBytes, kBytes);
    }
  }
  note_copies(c, copies, kBytes);
  return op + 1;
}

template <typename F, typename T, typename E, unsigned N>
const MicroOp* multimem_reduce_op(Context& c, const MicroOp* op) {
  constexpr uint32_t kBytes = N * sizeof(E);
  Copies copies;
  if (!locate_copies(c, op, kBytes, true, copies)) return nullptr;
  describe_access(c, op, copies.at, kBytes, MemoryAccess::Kind::kReduction);
  alignas(64) std::byte flat[kLanes * kBytes];
  read_elements<E, N>(c, op, flat);
  bool changed = false;
  for (size_t copy = 0; copy < copies.count(c.mask); ++copy) {
    for (uint32_t left = c.mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      uint64_t address = copies.address(lane, copy);
      for (uint32_t k = 0; k < kBytes; k += sizeof(T)) {
        T operand;
        std::memcpy(&operand, flat + static_cast<uint32_t>(lane) * kBytes + k, sizeof(T));
        update_at<F, T>(address + k, operand, T{0}, changed);
      }
    }
  }
  if (changed) note_copies(c, copies, kBytes);
  return op + 1;
}

enum class Verb : uint8_t { kLoadReduce, kStore, kReduce };

/// What the text asks for.
struct Multimem {
  Verb verb = Verb::kStore;
  std::string_view operation;
  bool wide_sum = false;  ///< .acc::f32
  Type type = Type::kNone;
  unsigned elements = 1;
};

/// Numbers of T combined by F, in N registers of E.
template <typename F, typename T, typename E, unsigned N>
OpFn reduction_handler(const Multimem& multimem) {
  return multimem.verb == Verb::kLoadReduce ? load_reduce_op<Plain<F, T>, E, N>
                                            : multimem_reduce_op<F, T, E, N>;
}

template <typename T, typename Number>
OpFn integer_handler(const Multimem& multimem) {
  if (multimem.elements != 1) return nullptr;
  if (multimem.operation == "add") return reduction_handler<AtomicAdd<T>, T, T, 1>(multimem);
  if (multimem.operation == "min") {
    return reduction_handler<AtomicMin<T, Number>, T, T, 1>(multimem);
  }
  if (multimem.operation == "max") {
    return reduction_handler<AtomicMax<T, Number>, T, T, 1>(multimem);
  }
  if (multimem.operation == "and") return reduction_handler<AtomicAnd<T>, T, T, 1>(multimem);
  if (multimem.operation == "or") return reduction_handler<AtomicOr<T>, T, T, 1>(multimem);
  if (multimem.operation == "xor") return reduction_handler<AtomicXor<T>, T, T, 1>(multimem);
  return nullptr;
}

template <typename F, typename T, typename E>
OpFn number_list_handler(const Multimem& multimem) {
  switch (multimem.elements) {
    case 1:
      return reduction_handler<F, T, E, 1>(multimem);
    case 2:
      return reduction_handler<F, T, E, 2>(multimem);
    case 4:
      if constexpr (sizeof(E) <= 4) return reduction_handler<F, T, E, 4>(multimem);
      return nullptr;
    case 8:
      if constexpr (sizeof(E) <= 2) return reduction_handler<F, T, E, 8>(multimem);
      return nullptr;
    default:
      return nullptr;
  }
}

template <typename Format, bool at_end, typename E>
OpFn half_sum_handler(unsigned elements) {
  using Sum = HalfSum<Format, at_end>;
  switch (elements) {
    case 1:
      return load_reduce_op<Sum, E, 1>;
    case 2:
      return load_reduce_op<Sum, E, 2>;
    case 4:
      return load_reduce_op<Sum, E, 4>;
    case 8:
      if constexpr (sizeof(E) == 2) return load_reduce_op<Sum, E, 8>;
      return nullptr;
    default:
      return nullptr;
  }
}

/// Format for sums of many, Half for single numbers; E holds one number or two.
template <typename Format, typename Half, typename E>
OpFn half_handler(const Multimem& multimem) {
  if (multimem.operation == "min") {
    return number_list_handler<HalfMin<Half>, uint16_t, E>(multimem);
  }
  if (multimem.operation == "max") {
    return number_list_handler<HalfMax<Half>, uint16_t, E>(multimem);
  }
  if (multimem.operation != "add") return nullptr;
  if (multimem.verb == Verb::kReduce) {
    return number_list_handler<HalfAdd<Half>, uint16_t, E>(multimem);
  }
  return multimem.wide_sum ? half_sum_handler<Format, true, E>(multimem.elements)
                           : half_sum_handler<Format, false, E>(multimem.elements);
}

OpFn find_reduction(const Multimem& multimem) {
  switch (multimem.type) {
    case Type::kU32:
    case Type::kB32:
      return integer_handler<uint32_t, uint32_t>(multimem);
    case Type::kS32:
      return integer_handler<uint32_t, int32_t>(multimem);
    case Type::kU64:
    case Type::kB64:
      return integer_handler<uint64_t, uint64_t>(multimem);
    case Type::kS64:
      return integer_handler<uint64_t, int64_t>(multimem);
    case Type::kF32:
      if (multimem.operation != "add") return nullptr;
      return number_list_handler<AtomicAddF32<false>, uint32_t, uint32_t>(multimem);
    case Type::kF64:
      if (multimem.operation != "add") return nullptr;
      return number_list_handler<AtomicAddF64, uint64_t, uint64_t>(multimem);
    case Type::kF16:
      return half_handler<F16, HalfF16, uint16_t>(multimem);
    case Type::kF16x2:
      return half_handler<F16, HalfF16, uint32_t>(multimem);
    case Type::kBf16:
      return half_handler<Bf16, HalfBf16, uint16_t>(multimem);
    case Type::kBf16x2:
      return half_handler<Bf16, HalfBf16, uint32_t>(multimem);
    default:
      return nullptr;
  }
}

template <typename E>
OpFn store_handler(unsigned elements) {
  switch (elements) {
    case 1:
      return multimem_store_op<E, 1>;
    case 2:
      return multimem_store_op<E, 2>;
    case 4:
      if constexpr (sizeof(E) <= 4) return multimem_store_op<E, 4>;
      return nullptr;
    case 8:
      if constexpr (sizeof(E) <= 2) return multimem_store_op<E, 8>;
      return nullptr;
    default:
      return nullptr;
  }
}

OpFn find_store_handler(const Multimem& multimem) {
  switch (ptx::bytes_of(multimem.type)) {
    case 2:
      return store_handler<uint16_t>(multimem.elements);
    case 4:
      return store_handler<uint32_t>(multimem.elements);
    case 8:
      return store_handler<uint64_t>(multimem.elements);
    default:
      return nullptr;
  }
}

uint16_t flags_of(Verb verb, MemoryOrder order) {
  uint16_t flags = kOpMemory;
  bool strong = order != MemoryOrder::kWeak;
  if (verb == Verb::kLoadReduce) {
    flags |= kOpLoad;
    if (strong) flags |= kOpOrdered | kOpWaits;
  } else {
    flags |= kOpSideEffect;
    if (strong) flags |= kOpOrdered;
  }
  if (acquires(order)) flags |= kOpAcquire;
  if (releases(order)) flags |= kOpRelease;
  return flags;
}

std::optional<Result<OpSpec>> find_multimem(OpQuery& query) {
  int verb = query.take_one({"ld_reduce", "st", "red"});
  if (verb < 0) return query.refuse_modifiers();
  Multimem multimem{.verb = static_cast<Verb>(verb)};
  bool loads = multimem.verb == Verb::kLoadReduce;
  auto order = take_order(
      query, multimem.verb == Verb::kReduce ? MemoryOrder::kRelaxed : MemoryOrder::kWeak);
  if (!order) return tl::unexpected(order.error());
  query.take("global");
  if (multimem.verb != Verb::kStore) {
    constexpr std::string_view kOperations[] = {"add", "min", "max", "and", "or", "xor"};
    int operation = query.take_one({"add", "min", "max", "and", "or", "xor"});
    if (operation >= 0) multimem.operation = kOperations[operation];
  }
  multimem.wide_sum = loads && query.take("acc::f32");
  multimem.elements = take_elements(query);
  multimem.type = take_data_type(query);
  OpSpec spec;
  spec.fn = multimem.verb == Verb::kStore ? find_store_handler(multimem) : find_reduction(multimem);
  if (spec.fn == nullptr) return query.refuse_modifiers();
  size_t data = loads ? 0 : 1;
  auto width = data_width(query, data, multimem.type, multimem.elements);
  if (!width) return tl::unexpected(width.error());
  spec.flags = flags_of(multimem.verb, *order);
  if (*order != MemoryOrder::kWeak) spec.aux |= kStrongAccess;
  spec.has_site = true;
  if (loads) add_data(spec, data, multimem.type, multimem.elements, true);
  add_address(query, spec, loads ? 1 : 0);
  if (!loads) {
    add_data(spec, data, multimem.type, multimem.elements, false);
    if (multimem.elements > 1) spec.flags |= kOpListSource;
  }
  return query.finish(std::move(spec), 2);
}

constexpr OpEntry kEntries[] = {{"multimem", find_multimem}};

}  // namespace

std::span<const OpEntry> multimem_entries() { return kEntries; }

}  // namespace cb::sim
