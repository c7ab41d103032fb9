#pragma once

// Where the lanes of a memory operation go. Handlers compute the addresses of all active lanes at
// once, as base + lane * stride where the register has that form, and check them as one range
// against what the operation was allowed to touch last time. Only when that fails does each lane
// get a look of its own, and a finding if it may not go there.

#include <bit>
#include <cstdint>

#include "simulator/exec/context.h"
#include "simulator/exec/kernel_run.h"
#include "simulator/exec/lanes.h"
#include "simulator/exec/machine.h"
#include "simulator/memory/address_space.h"

namespace cb::sim {

/// How the address operand of an operation is to be read.
enum class AccessSpace : uint8_t {
  kGeneric,    ///< global, const and generic: an address
  kParameter,  ///< the launch's parameters: an address too
  kShared,     ///< an offset in the block's shared memory
  kLocal,      ///< an offset in each lane's local memory
};

/// Bits of MicroOp::aux of memory operations.
inline constexpr uint8_t kNarrowAddress = 1;  ///< the address register has 32 bits
inline constexpr uint8_t kStrongAccess = 2;   ///< anything but weak
inline constexpr uint8_t kClusterWindow = 4;  ///< the address is one of .shared::cluster

/// Generic addresses of all lanes' accesses; those of active lanes are checked.
struct LaneAddresses {
  /// What holds the memory.
  enum class Region : uint8_t { kSite, kParameters, kShared, kCluster, kLocal };

  Region region;
  bool is_vector;  ///< `lanes` counts, else base and stride
  uint64_t base;
  int64_t stride;
  uint64_t lo, hi;  ///< of active lanes, hi one past the last byte
  alignas(64) uint64_t lanes[kLanes];

  bool uniform() const { return !is_vector && stride == 0; }
  uint64_t at(int lane) const {
    return is_vector ? lanes[lane] : base + static_cast<uint64_t>(stride * lane);
  }
};

/// Whether the site allows [lo, hi).
inline bool site_allows(const Context& c, const AccessSite& site, uint64_t lo, uint64_t hi,
                        bool write) {
  return lo >= site.lo && hi <= site.hi && lo < hi && site.epoch == c.memory->epoch() &&
         (site.writable || !write);
}

/// The check of [lo, hi) that nearly all accesses pass. On success the addresses are generic.
template <AccessSpace space>
inline bool allowed_at_once(Context& c, const MicroOp* op, bool write, LaneAddresses& out) {
  if constexpr (space == AccessSpace::kGeneric) {
    out.region = LaneAddresses::Region::kSite;
    return site_allows(c, c.sites[op->target], out.lo, out.hi, write);
  } else if constexpr (space == AccessSpace::kParameter) {
    out.region = LaneAddresses::Region::kParameters;
    uint64_t begin = c.run->param_base;
    return !write && out.lo >= begin && out.hi <= begin + c.run->param_bytes && out.lo < out.hi;
  } else if constexpr (space == AccessSpace::kShared) {
    out.region = LaneAddresses::Region::kShared;
    if (out.hi > c.shared_bytes || out.lo >= out.hi) return false;
    out.base += c.shared_base;
    out.lo += c.shared_base;
    out.hi += c.shared_base;
    return true;
  } else {
    out.region = LaneAddresses::Region::kLocal;
    if (out.hi > c.local_lane_bytes || out.lo >= out.hi) return false;
    out.base += c.local_base;
    out.stride += static_cast<int64_t>(c.local_lane_bytes);
    out.lo = c.local_base;
    out.hi = c.local_base + kLanes * c.local_lane_bytes;
    return true;
  }
}

/// The general form of locate(): any form of address register, lane by lane if need be.
bool locate_lanes(Context& c, const MicroOp* op, AccessSpace space, uint32_t bytes, bool write,
                  LaneAddresses& out);

/// Computes and checks the addresses of an operation that accesses `bytes` (a power of two) per
/// lane. False after a fault.
template <AccessSpace space>
[[gnu::always_inline]] inline bool locate(Context& c, const MicroOp* op, uint32_t bytes, bool write,
                                          LaneAddresses& out) {
  const Meta& meta = c.meta[op->a.index];
  // Narrow addresses wrap at 2^32, the sum with the offset included.
  bool narrow = (op->aux & kNarrowAddress) != 0;
  uint64_t base = meta.base + op->immediate;
  if (narrow) base = static_cast<uint32_t>(base);
  uint64_t end = base + static_cast<uint64_t>(int64_t{meta.stride} * (kLanes - 1));
  if (!meta.is_vector && !(narrow && end > UINT32_MAX)) [[likely]] {
    out.is_vector = false;
    out.base = base;
    out.stride = meta.stride;
    int first = 0, last = kLanes - 1;
    if (c.mask != kAllLanes) {
      first = std::countr_zero(c.mask);
      last = kLanes - 1 - std::countl_zero(c.mask);
    }
    if (out.stride < 0) std::swap(first, last);
    out.lo = out.base + static_cast<uint64_t>(out.stride * first);
    out.hi = out.base + static_cast<uint64_t>(out.stride * last) + bytes;
    bool aligned = ((out.base | static_cast<uint64_t>(out.stride)) & (bytes - 1)) == 0;
    if (aligned && allowed_at_once<space>(c, op, write, out)) [[likely]]
      return true;
  }
  return locate_lanes(c, op, space, bytes, write, out);
}

/// The same for addresses that the handler chose: out.lanes has those of the active lanes, as the
/// instruction's register would.
bool locate_chosen(Context& c, const MicroOp* op, AccessSpace space, uint32_t bytes, bool write,
                   LaneAddresses& out);

/// The same for multimem operations: `out` has multicast addresses, and `allocations[lane]` says
/// what an active lane's address stands for.
bool locate_multicast(Context& c, const MicroOp* op, uint32_t bytes, bool write, LaneAddresses& out,
                      const Allocation** allocations);

/// Tells the timing model what the operation touches.
void fill_access(Context& c, const MicroOp* op, const LaneAddresses& addresses, uint32_t bytes,
                 MemoryAccess::Kind kind);
inline void describe_access(Context& c, const MicroOp* op, const LaneAddresses& addresses,
                            uint32_t bytes, MemoryAccess::Kind kind) {
  if (c.timed) fill_access(c, op, addresses, bytes, kind);
}

/// Tells the recorder of a possible wait loop what the active lanes have read.
void record_reads(Context& c, const LaneAddresses& addresses, uint32_t bytes);
inline void report_reads(Context& c, const LaneAddresses& addresses, uint32_t bytes) {
  if (c.recorder != nullptr) [[unlikely]]
    record_reads(c, addresses, bytes);
}

/// One aligned access of up to 8 bytes: pinned memory is also read and written by host processes.
template <typename T>
inline T load_once(uint64_t address) {
  return __atomic_load_n(reinterpret_cast<const T*>(address), __ATOMIC_RELAXED);
}
template <typename T>
inline void store_once(uint64_t address, T value) {
  __atomic_store_n(reinterpret_cast<T*>(address), value, __ATOMIC_RELAXED);
}

/// Whether the set bits of `mask` are neighbours; it is not 0.
inline bool is_run(uint32_t mask) {
  uint32_t shifted = mask >> std::countr_zero(mask);
  return (shifted & (shifted + 1)) == 0;
}

}  // namespace cb::sim
