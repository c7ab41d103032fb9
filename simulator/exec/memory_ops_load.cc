// ld. A load from one address gives a uniform register; anything else gives a vector. Lanes whose
// addresses are neighbours are copied as one block.

#include "simulator/exec/engine_port.h"
#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Type;

struct alignas(16) Word128 {
  uint64_t half[2];
};

template <typename T, typename D>
inline D load_extended(uint64_t address) {
  return static_cast<D>(load_once<T>(address));
}

/// values[lane] for the active lanes, each `offset` bytes after its address.
template <typename T, typename D>
inline void load_each(const Context& c, const LaneAddresses& from, uint64_t offset, D* values) {
  if (c.mask == kAllLanes) {
    if (from.is_vector) {
      for (int i = 0; i < kLanes; ++i) values[i] = load_extended<T, D>(from.lanes[i] + offset);
    } else {
      uint64_t address = from.base + offset;
      for (int i = 0; i < kLanes; ++i, address += static_cast<uint64_t>(from.stride)) {
        values[i] = load_extended<T, D>(address);
      }
    }
    return;
  }
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    values[lane] = load_extended<T, D>(from.at(lane) + offset);
  }
}

/// Whole vector registers at a time, each lane's part of which is aligned.
template <typename T>
inline void copy_all(uint64_t from, T* to) {
  const auto* lines = reinterpret_cast<const __m256i*>(from);
  for (size_t i = 0; i < kLanes * sizeof(T) / 32; ++i) {
    _mm256_store_si256(reinterpret_cast<__m256i*>(to) + i, _mm256_loadu_si256(lines + i));
  }
}

template <typename T, typename D>
[[gnu::noinline]] void load_lanes(Context& c, Slot slot, const LaneAddresses& from) {
  LaneOutput<D> output(c, slot);
  bool neighbours = !from.is_vector && from.stride == static_cast<int64_t>(sizeof(T));
  if (sizeof(T) == sizeof(D) && neighbours && c.mask == kAllLanes) {
    copy_all(from.base, output.values());
  } else {
    load_each<T, D>(c, from, 0, output.values());
  }
  output.commit();
}

template <AccessSpace space, typename T, typename D>
const MicroOp* load_op(Context& c, const MicroOp* op) {
  LaneAddresses from;
  if (!locate<space>(c, op, sizeof(T), false, from)) return nullptr;
  describe_access(c, op, from, sizeof(T), MemoryAccess::Kind::kLoad);
  report_reads(c, from, sizeof(T));
  if (op->d.index == kNoSlot) return op + 1;
  if (from.uniform()) {
    write_uniform<D>(c, op->d, load_extended<T, D>(from.base));
  } else {
    load_lanes<T, D>(c, op->d, from);
  }
  return op + 1;
}

/// The registers of a list as arrays to be filled: their own vectors, or room beside them.
template <typename D>
class ListOutput {
 public:
  ListOutput(Context& c, const MicroOp* op) : c_(c), slots_(list_of(c, op)), count_(op->list_size) {
    for (unsigned k = 0; k < count_; ++k) {
      bool direct = c.full && slots_[k].index != kNoSlot;
      values_[k] = direct ? vector_of<D>(c, slots_[k]) : room_[k];
    }
  }
  D* const* values() { return values_; }
  void commit() {
    for (unsigned k = 0; k < count_; ++k) {
      if (slots_[k].index == kNoSlot) continue;
      if (c_.full) {
        c_.meta[slots_[k].index].is_vector = 1;
      } else {
        blend_lanes(materialise<D>(c_, slots_[k]), room_[k], c_.mask);
      }
    }
  }

 private:
  Context& c_;
  const Slot* slots_;
  unsigned count_;
  D* values_[kMostElements];
  alignas(64) D room_[kMostElements][kLanes];
};

/// The next warp mostly reads what lies behind, and soon: the processor's own prefetching does not
/// see through the steps of the warps.
inline void prefetch_behind(uint64_t address, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += 64) {
    __builtin_prefetch(reinterpret_cast<const void*>(address + bytes + at));
  }
}

template <typename T, typename D, unsigned N>
[[gnu::noinline]] void load_list(Context& c, const MicroOp* op, const LaneAddresses& from) {
  ListOutput<D> output(c, op);
  if constexpr (kTransposes<T, N> && sizeof(T) == sizeof(D)) {
    if (!from.is_vector && from.stride == static_cast<int64_t>(N * sizeof(T)) &&
        c.mask == kAllLanes) {
      prefetch_behind(from.base, kLanes * N * sizeof(T));
      split_lanes<D, N>(from.base, output.values());
      output.commit();
      return;
    }
  }
  for (unsigned k = 0; k < N; ++k) load_each<T, D>(c, from, k * sizeof(T), output.values()[k]);
  output.commit();
}

template <AccessSpace space, typename T, typename D, unsigned N>
const MicroOp* load_list_op(Context& c, const MicroOp* op) {
  LaneAddresses from;
  if (!locate<space>(c, op, N * sizeof(T), false, from)) return nullptr;
  describe_access(c, op, from, N * sizeof(T), MemoryAccess::Kind::kLoad);
  report_reads(c, from, N * sizeof(T));
  if (!from.uniform()) {
    load_list<T, D, N>(c, op, from);
    return op + 1;
  }
  const Slot* slots = list_of(c, op);
  for (unsigned k = 0; k < N; ++k) {
    if (slots[k].index == kNoSlot) continue;
    write_uniform<D>(c, slots[k], load_extended<T, D>(from.base + k * sizeof(T)));
  }
  return op + 1;
}

/// A 128-bit slot is always a vector once written; one that was not reads as zero.
template <AccessSpace space>
const MicroOp* load_128_op(Context& c, const MicroOp* op) {
  LaneAddresses from;
  if (!locate<space>(c, op, sizeof(Word128), false, from)) return nullptr;
  describe_access(c, op, from, sizeof(Word128), MemoryAccess::Kind::kLoad);
  report_reads(c, from, sizeof(Word128));
  if (op->d.index == kNoSlot) return op + 1;
  auto* lanes = vector_of<Word128>(c, op->d);
  Meta& meta = c.meta[op->d.index];
  if (!meta.is_vector) std::memset(lanes, 0, kLanes * sizeof(Word128));
  meta.is_vector = 1;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    std::memcpy(lanes + lane, reinterpret_cast<const void*>(from.at(lane)), sizeof(Word128));
  }
  return op + 1;
}

template <AccessSpace space, typename T, typename D>
OpFn list_handler(unsigned elements) {
  switch (elements) {
    case 1:
      return load_op<space, T, D>;
    case 2:
      return load_list_op<space, T, D, 2>;
    case 4:
      return load_list_op<space, T, D, 4>;
    case 8:
      return sizeof(T) <= 4 ? load_list_op<space, T, D, 8> : nullptr;
    default:
      return nullptr;
  }
}

OpFn load_handler(AccessSpace space, Type type, unsigned register_bytes, unsigned elements) {
  return for_space(space, [&](auto space_tag) -> OpFn {
    constexpr AccessSpace kSpace = decltype(space_tag)::kSpace;
    unsigned bytes = ptx::bytes_of(type);
    if (bytes == 16) return elements == 1 ? load_128_op<kSpace> : nullptr;
    return for_access(bytes, register_bytes, is_signed(type), [&](auto memory, auto reg) -> OpFn {
      using T = typename decltype(memory)::type;
      using D = typename decltype(reg)::type;
      if constexpr (sizeof(T) <= sizeof(D)) {
        return list_handler<kSpace, T, D>(elements);
      } else {
        return nullptr;
      }
    });
  });
}

uint16_t load_flags(AccessSpace space, MemoryOrder order) {
  uint16_t flags = kOpMemory | kOpLoad;
  bool seen_by_others = space == AccessSpace::kGeneric || space == AccessSpace::kShared;
  if (order != MemoryOrder::kWeak && seen_by_others) flags |= kOpOrdered | kOpWaits;
  if (acquires(order)) flags |= kOpAcquire;
  return flags;
}

std::optional<Result<OpSpec>> find_load(OpQuery& query) {
  auto order = take_order(query, MemoryOrder::kWeak);
  if (!order) return tl::unexpected(order.error());
  if (releases(*order)) return query.refuse("a load cannot release");
  auto space = take_space(query, 1);
  if (!space) return tl::unexpected(space.error());
  query.take("nc");
  bool has_policy = take_cache_hints(query, true);
  unsigned elements = take_elements(query);
  Type type = take_data_type(query);
  auto width = data_width(query, 0, type, elements);
  if (!width) return tl::unexpected(width.error());
  OpSpec spec;
  spec.fn = load_handler(*space, type, *width, elements);
  spec.flags = load_flags(*space, *order);
  if (*order != MemoryOrder::kWeak) spec.aux |= kStrongAccess;
  spec.aux |= window_of(query);
  spec.has_site = *space == AccessSpace::kGeneric || *space == AccessSpace::kParameter;
  add_data(spec, 0, register_type_for(type, *width), elements, true);
  add_address(query, spec, 1);
  return query.finish(std::move(spec), has_policy ? 3 : 2);
}

constexpr OpEntry kEntries[] = {{"ld", find_load}, {"ldu", find_load}};

}  // namespace

std::span<const OpEntry> load_entries() { return kEntries; }

}  // namespace cb::sim
