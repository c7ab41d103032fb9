// st. A weak store is in memory when its handler returns. A strong one to memory that others see is
// handed to the engine, which makes it visible when it arrives; shared memory is so near that its
// strong stores are weak ones in the order of time.

#include "simulator/exec/engine_port.h"
#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Type;

struct alignas(16) Word128 {
  uint64_t half[2];
};

template <typename T, typename R>
inline void store_each(const Context& c, const LaneAddresses& to, uint64_t offset,
                       const R* values) {
  if (c.mask == kAllLanes && !to.is_vector) {
    uint64_t address = to.base + offset;
    for (int i = 0; i < kLanes; ++i, address += static_cast<uint64_t>(to.stride)) {
      store_once(address, static_cast<T>(values[i]));
    }
    return;
  }
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    store_once(to.at(lane) + offset, static_cast<T>(values[lane]));
  }
}

template <typename T, typename R>
[[gnu::noinline]] void store_lanes(Context& c, Slot slot, const LaneAddresses& to) {
  alignas(64) R room[kLanes];
  const R* values = read_lanes<R>(c, slot, room);
  bool neighbours = !to.is_vector && to.stride == static_cast<int64_t>(sizeof(T));
  if (sizeof(T) == sizeof(R) && neighbours && c.mask == kAllLanes) {
    auto* lines = reinterpret_cast<__m256i*>(to.base);
    for (size_t i = 0; i < kLanes * sizeof(R) / 32; ++i) {
      _mm256_storeu_si256(lines + i,
                          _mm256_load_si256(reinterpret_cast<const __m256i*>(values) + i));
    }
  } else {
    store_each<T, R>(c, to, 0, values);
  }
}

/// Of lanes that write to one place the highest wins.
inline int winner(uint32_t mask) { return kLanes - 1 - std::countl_zero(mask); }

template <typename R>
inline R lane_value(Context& c, Slot slot, int lane) {
  const Meta& meta = c.meta[slot.index];
  return meta.is_vector ? vector_of<R>(c, slot)[lane] : affine_lane<R>(meta, lane);
}

template <AccessSpace space, typename T, typename R>
const MicroOp* store_op(Context& c, const MicroOp* op) {
  LaneAddresses to;
  if (!locate<space>(c, op, sizeof(T), true, to)) return nullptr;
  describe_access(c, op, to, sizeof(T), MemoryAccess::Kind::kStore);
  if (to.uniform()) {
    store_once(to.base, static_cast<T>(lane_value<R>(c, op->b, winner(c.mask))));
  } else {
    store_lanes<T, R>(c, op->b, to);
  }
  if constexpr (space != AccessSpace::kLocal) note_write(c, to.lo, to.hi);
  return op + 1;
}

template <typename T, typename R, unsigned N>
[[gnu::noinline]] void store_list(Context& c, const MicroOp* op, const LaneAddresses& to) {
  const Slot* slots = list_of(c, op);
  alignas(64) R room[N][kLanes];
  const R* values[N];
  for (unsigned k = 0; k < N; ++k) values[k] = read_lanes<R>(c, slots[k], room[k]);
  if constexpr (kTransposes<T, N> && sizeof(T) == sizeof(R)) {
    if (!to.is_vector && to.stride == static_cast<int64_t>(N * sizeof(T)) && c.mask == kAllLanes) {
      join_lanes<R, N>(values, to.base);
      return;
    }
  }
  for (unsigned k = 0; k < N; ++k) store_each<T, R>(c, to, k * sizeof(T), values[k]);
}

template <AccessSpace space, typename T, typename R, unsigned N>
const MicroOp* store_list_op(Context& c, const MicroOp* op) {
  LaneAddresses to;
  if (!locate<space>(c, op, N * sizeof(T), true, to)) return nullptr;
  describe_access(c, op, to, N * sizeof(T), MemoryAccess::Kind::kStore);
  if (to.uniform()) {
    const Slot* slots = list_of(c, op);
    int lane = winner(c.mask);
    for (unsigned k = 0; k < N; ++k) {
      store_once(to.base + k * sizeof(T), static_cast<T>(lane_value<R>(c, slots[k], lane)));
    }
  } else {
    store_list<T, R, N>(c, op, to);
  }
  if constexpr (space != AccessSpace::kLocal) note_write(c, to.lo, to.hi);
  return op + 1;
}

/// Lanes of a 128-bit slot; one that was never written reads as zero.
const Word128* lanes_128(Context& c, Slot slot, Word128* room) {
  if (c.meta[slot.index].is_vector) return vector_of<Word128>(c, slot);
  std::memset(room, 0, kLanes * sizeof(Word128));
  return room;
}

template <AccessSpace space>
const MicroOp* store_128_op(Context& c, const MicroOp* op) {
  LaneAddresses to;
  if (!locate<space>(c, op, sizeof(Word128), true, to)) return nullptr;
  describe_access(c, op, to, sizeof(Word128), MemoryAccess::Kind::kStore);
  alignas(64) Word128 room[kLanes];
  const Word128* values = lanes_128(c, op->b, room);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    std::memcpy(reinterpret_cast<void*>(to.at(lane)), values + lane, sizeof(Word128));
  }
  note_write(c, to.lo, to.hi);
  return op + 1;
}

/// Hands the lanes' bytes to the engine; those for shared and local memory go to their places at
/// once.
const MicroOp* finish_strong(Context& c, const MicroOp* op, const LaneAddresses& to,
                             LaneWrites& writes) {
  bool any_scratch = false;
  for (uint32_t left = writes.mask; left != 0; left &= left - 1) {
    auto lane = static_cast<size_t>(std::countr_zero(left));
    if (writes.addresses[lane] < kScratchBase) continue;
    std::memcpy(reinterpret_cast<void*>(writes.addresses[lane]), writes.data[lane].data(),
                writes.bytes);
    writes.mask &= ~(left & -left);
    any_scratch = true;
  }
  if (any_scratch) note_write(c, to.lo, to.hi);
  c.access.kind = MemoryAccess::Kind::kNone;
  if (writes.mask == 0) return op + 1;
  fill_access(c, op, to, writes.bytes, MemoryAccess::Kind::kStore);
  post_store(c, op, writes);
  return op + 1;
}

template <typename T, typename R, unsigned N>
const MicroOp* strong_store_op(Context& c, const MicroOp* op) {
  constexpr uint32_t kBytes = N * sizeof(T);
  LaneAddresses to;
  if (!locate<AccessSpace::kGeneric>(c, op, kBytes, true, to)) return nullptr;
  LaneWrites writes;
  writes.mask = to.uniform() ? uint32_t{1} << winner(c.mask) : c.mask;
  writes.bytes = kBytes;
  const Slot* slots = N == 1 ? &op->b : list_of(c, op);
  alignas(64) R room[kLanes];
  for (unsigned k = 0; k < N; ++k) {
    const R* values = read_lanes<R>(c, slots[k], room);
    for (uint32_t left = writes.mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      auto index = static_cast<size_t>(lane);
      writes.addresses[index] = to.at(lane);
      T value = static_cast<T>(values[lane]);
      std::memcpy(writes.data[index].data() + k * sizeof(T), &value, sizeof(T));
    }
  }
  return finish_strong(c, op, to, writes);
}

const MicroOp* strong_store_128_op(Context& c, const MicroOp* op) {
  LaneAddresses to;
  if (!locate<AccessSpace::kGeneric>(c, op, sizeof(Word128), true, to)) return nullptr;
  LaneWrites writes;
  writes.mask = c.mask;
  writes.bytes = sizeof(Word128);
  alignas(64) Word128 room[kLanes];
  const Word128* values = lanes_128(c, op->b, room);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto index = static_cast<size_t>(lane);
    writes.addresses[index] = to.at(lane);
    std::memcpy(writes.data[index].data(), values + lane, sizeof(Word128));
  }
  return finish_strong(c, op, to, writes);
}

template <AccessSpace space, typename T, typename R>
OpFn weak_handler(unsigned elements) {
  switch (elements) {
    case 1:
      return store_op<space, T, R>;
    case 2:
      return store_list_op<space, T, R, 2>;
    case 4:
      return store_list_op<space, T, R, 4>;
    case 8:
      return sizeof(T) <= 4 ? store_list_op<space, T, R, 8> : nullptr;
    default:
      return nullptr;
  }
}

template <typename T, typename R>
OpFn strong_handler(unsigned elements) {
  if constexpr (sizeof(T) <= 4) {
    if (elements == 4) return strong_store_op<T, R, 4>;
  }
  if (elements == 2) return strong_store_op<T, R, 2>;
  return elements == 1 ? strong_store_op<T, R, 1> : nullptr;
}

template <typename Use>
OpFn for_store(Type type, unsigned register_bytes, Use use) {
  return for_access(ptx::bytes_of(type), register_bytes, false, [&](auto memory, auto reg) -> OpFn {
    if constexpr (sizeof(typename decltype(memory)::type) <= sizeof(typename decltype(reg)::type)) {
      return use(memory, reg);
    } else {
      return nullptr;
    }
  });
}

OpFn store_handler(AccessSpace space, Type type, unsigned register_bytes, unsigned elements) {
  return for_space(space, [&](auto space_tag) -> OpFn {
    constexpr AccessSpace kSpace = decltype(space_tag)::kSpace;
    if constexpr (kSpace == AccessSpace::kParameter) {
      return nullptr;
    } else {
      if (ptx::bytes_of(type) == 16) return elements == 1 ? store_128_op<kSpace> : nullptr;
      return for_store(type, register_bytes, [&](auto memory, auto reg) {
        return weak_handler<kSpace, typename decltype(memory)::type, typename decltype(reg)::type>(
            elements);
      });
    }
  });
}

OpFn strong_store_handler(Type type, unsigned register_bytes, unsigned elements) {
  if (ptx::bytes_of(type) == 16) return elements == 1 ? strong_store_128_op : nullptr;
  return for_store(type, register_bytes, [&](auto memory, auto reg) {
    return strong_handler<typename decltype(memory)::type, typename decltype(reg)::type>(elements);
  });
}

uint16_t store_flags(AccessSpace space, MemoryOrder order) {
  uint16_t flags = kOpSideEffect;
  bool strong = order != MemoryOrder::kWeak;
  if (strong && space == AccessSpace::kGeneric) {
    flags |= kOpStrongStore | kOpOrdered;
  } else {
    flags |= kOpMemory;
    if (strong && space == AccessSpace::kShared) flags |= kOpOrdered;
  }
  if (releases(order)) flags |= kOpRelease;
  return flags;
}

std::optional<Result<OpSpec>> find_store(OpQuery& query) {
  auto order = take_order(query, MemoryOrder::kWeak);
  if (!order) return tl::unexpected(order.error());
  if (acquires(*order)) return query.refuse("a store cannot acquire");
  if (query.has("const")) return query.refuse("constant memory cannot be written");
  auto space = take_space(query, 0);
  if (!space) return tl::unexpected(space.error());
  if (*space == AccessSpace::kParameter) return query.refuse("parameters cannot be written");
  bool has_policy = take_cache_hints(query, false);
  unsigned elements = take_elements(query);
  Type type = take_data_type(query);
  auto width = data_width(query, 1, type, elements);
  if (!width) return tl::unexpected(width.error());
  OpSpec spec;
  spec.flags = store_flags(*space, *order);
  spec.fn = (spec.flags & kOpStrongStore) != 0 ? strong_store_handler(type, *width, elements)
                                               : store_handler(*space, type, *width, elements);
  if (*order != MemoryOrder::kWeak) spec.aux |= kStrongAccess;
  spec.aux |= window_of(query);
  spec.has_site = *space == AccessSpace::kGeneric;
  add_address(query, spec, 0);
  add_data(spec, 1, register_type_for(type, *width), elements, false);
  if (elements > 1) spec.flags |= kOpListSource;
  return query.finish(std::move(spec), has_policy ? 3 : 2);
}

constexpr OpEntry kEntries[] = {{"st", find_store}};

}  // namespace

std::span<const OpEntry> store_entries() { return kEntries; }

}  // namespace cb::sim
