#include "simulator/exec/memory_ops_address.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/exec/engine_port.h"
#include "simulator/exec/shared_window.h"

namespace cb::sim {
namespace {

using Region = LaneAddresses::Region;

struct Attempt {
  Context& c;
  const MicroOp* op;
  uint32_t bytes;
  bool write;
};

bool refuse(const Attempt& attempt, Finding::Kind kind, int lane, uint64_t address,
            const std::string& what) {
  fault(attempt.c, attempt.op, kind, lane,
        fmt::format("{} of {} bytes at {:#x}: {}", attempt.write ? "write" : "read", attempt.bytes,
                    address, what),
        address, attempt.bytes, attempt.write);
  return false;
}

bool is_inside(uint64_t lo, uint64_t hi, uint64_t begin, uint64_t bytes) {
  return lo >= begin && hi <= begin + bytes && lo < hi;
}

/// The part of the scratch arena that holds [lo, hi) and is the lanes' own.
bool find_scratch(const Attempt& attempt, uint64_t lo, uint64_t hi, Region& region) {
  const Context& c = attempt.c;
  if (is_inside(lo, hi, c.shared_base, c.shared_bytes)) {
    region = Region::kShared;
    return true;
  }
  if (is_inside(lo, hi, c.local_base, kLanes * c.local_lane_bytes)) {
    region = Region::kLocal;
    return true;
  }
  std::optional<uint32_t> rank = rank_of_shared(*c.block, lo);
  if (rank && c.block->cluster != nullptr && c.block->cluster->blocks[*rank] != nullptr &&
      is_inside(lo, hi, shared_base_of(*c.block, *rank), c.shared_bytes)) {
    region = Region::kCluster;
    return true;
  }
  if (!attempt.write && is_inside(lo, hi, c.run->param_base, c.run->param_bytes)) {
    region = Region::kParameters;
    return true;
  }
  return false;
}

Finding::Kind finding_of(AccessFault fault) {
  switch (fault) {
    case AccessFault::kOutOfBounds:
      return Finding::Kind::kOutOfBounds;
    case AccessFault::kUseAfterFree:
      return Finding::Kind::kUseAfterFree;
    case AccessFault::kClosed:
      return Finding::Kind::kEarlyAccess;
    case AccessFault::kNotPermitted:
      return Finding::Kind::kNotPermitted;
    case AccessFault::kReadOnly:
      return Finding::Kind::kReadOnly;
    case AccessFault::kNone:
    case AccessFault::kUnmapped:
    case AccessFault::kUnordered:
    case AccessFault::kMulticast:
      break;
  }
  return Finding::Kind::kIllegalAddress;
}

void fill_site(const Context& c, AccessSite& site, const Access& access, bool write) {
  site.lo = access.lo;
  site.hi = access.hi;
  site.epoch = c.memory->epoch();
  site.writable = write;
  const Allocation& allocation = *access.allocation;
  site.device = static_cast<uint16_t>(allocation.device);
  site.target =
      allocation.on_host() ? MemoryAccess::Target::kPinned : MemoryAccess::Target::kDevice;
}

/// An access to the memory of another block of the cluster that may not be.
bool refuse_block(const Attempt& attempt, int lane, uint64_t address, uint32_t rank) {
  const Cluster& cluster = *attempt.c.block->cluster;
  if (cluster.blocks[rank] == nullptr) {
    return refuse(attempt, Finding::Kind::kUseAfterFree, lane, address,
                  fmt::format("shared memory of block {} of the cluster, which has ended", rank));
  }
  return refuse(attempt, Finding::Kind::kOutOfBounds, lane, address,
                fmt::format("beyond the {} bytes of shared memory of block {} of the cluster",
                            cluster.shared_bytes, rank));
}

bool refuse_scratch(const Attempt& attempt, int lane, uint64_t address) {
  const Context& c = attempt.c;
  Finding::Kind kind = Finding::Kind::kOutOfBounds;
  if (address >= c.run->param_base && address < c.run->param_base + c.run->param_bytes) {
    if (attempt.write) {
      return refuse(attempt, Finding::Kind::kReadOnly, lane, address, "a parameter of the kernel");
    }
    return refuse(
        attempt, kind, lane, address,
        fmt::format("beyond the {} bytes of the kernel's parameters", c.run->param_bytes));
  }
  if (std::optional<uint32_t> rank = rank_of_shared(*c.block, address)) {
    if (*rank != c.block->cluster_rank) return refuse_block(attempt, lane, address, *rank);
  }
  constexpr uint64_t kNear = 1024;
  uint64_t shared_end = c.shared_base + c.shared_bytes;
  if (address + kNear >= c.shared_base && address < shared_end + kNear) {
    return refuse(attempt, kind, lane, address,
                  fmt::format("offset {} in {} bytes of shared memory",
                              static_cast<int64_t>(address - c.shared_base), c.shared_bytes));
  }
  uint64_t local_end = c.local_base + kLanes * c.local_lane_bytes;
  if (address + kNear >= c.local_base && address < local_end + kNear) {
    return refuse(attempt, kind, lane, address, "outside the local memory of the thread");
  }
  return refuse(attempt, Finding::Kind::kIllegalAddress, lane, address,
                "neither this block's shared memory nor this thread's local memory");
}

/// Generic addresses, lane by lane. The site is left with an allocation on another device where
/// there is one: that is what takes time.
bool check_generic_lanes(const Attempt& attempt, LaneAddresses& out) {
  Context& c = attempt.c;
  AccessSite& site = c.sites[attempt.op->target];
  const auto own = static_cast<uint16_t>(c.run->accessor.device);
  AccessSite remote;
  bool any_site = false;
  Region scratch = Region::kShared;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uint64_t address = out.at(lane);
    uint64_t end = address + attempt.bytes;
    if ((address & (attempt.bytes - 1)) != 0) {
      return refuse(attempt, Finding::Kind::kMisaligned, lane, address,
                    fmt::format("not a multiple of {}", attempt.bytes));
    }
    if (address >= kScratchBase && address < kScratchBase + kArenaBytes) {
      Region found;
      if (!find_scratch(attempt, address, end, found)) {
        return refuse_scratch(attempt, lane, address);
      }
      // What takes longest is what the access is charged for.
      if (scratch != Region::kCluster) scratch = found;
      continue;
    }
    any_site = true;
    if (!site_allows(c, site, address, end, attempt.write)) {
      Access access = c.memory->check(address, attempt.bytes, c.run->accessor, attempt.write);
      if (access.fault != AccessFault::kNone) {
        std::string what = access.fault == AccessFault::kMulticast
                               ? "a multicast address, which only multimem instructions may use"
                               : c.memory->describe(address);
        return refuse(attempt, finding_of(access.fault), lane, address, what);
      }
      fill_site(c, site, access, attempt.write);
    }
    if (site.device != own) remote = site;
  }
  if (remote.epoch != 0) site = remote;
  out.region = any_site ? Region::kSite : scratch;
  return true;
}

/// Shared and local memory: finds the lane to blame.
bool refuse_offsets(const Attempt& attempt, const LaneAddresses& out, AccessSpace space) {
  const Context& c = attempt.c;
  bool shared = space == AccessSpace::kShared;
  uint64_t limit = shared ? c.shared_bytes : c.local_lane_bytes;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uint64_t offset = out.at(lane);
    if ((offset & (attempt.bytes - 1)) != 0) {
      return refuse(attempt, Finding::Kind::kMisaligned, lane, offset,
                    fmt::format("not a multiple of {}", attempt.bytes));
    }
    if (!is_inside(offset, offset + attempt.bytes, 0, limit)) {
      return refuse(attempt, Finding::Kind::kOutOfBounds, lane, offset,
                    fmt::format("offset {} in {} bytes of {} memory", static_cast<int64_t>(offset),
                                limit, shared ? "shared" : "local"));
    }
  }
  return true;
}

/// The range of the active lanes' addresses. Returns the bits by which one misses a multiple of
/// `bytes`.
uint64_t find_range(const Context& c, uint32_t bytes, LaneAddresses& out) {
  // Lanes that are not active follow one that is, so that loops need not ask.
  uint64_t first = out.lanes[std::countr_zero(c.mask)];
  for (uint32_t left = ~c.mask; left != 0; left &= left - 1) {
    out.lanes[std::countr_zero(left)] = first;
  }
  uint64_t lowest = first, highest = first, bits = 0;
  for (int i = 0; i < kLanes; ++i) {
    lowest = std::min(lowest, out.lanes[i]);
    highest = std::max(highest, out.lanes[i]);
    bits |= out.lanes[i];
  }
  out.lo = lowest;
  out.hi = highest + bytes;
  return bits & (bytes - 1);
}

/// Addresses of all lanes and the range of the active ones, as the register and the offset say.
/// Returns the bits by which an active lane misses a multiple of `bytes`.
uint64_t compute_lanes(Context& c, const MicroOp* op, uint32_t bytes, LaneAddresses& out) {
  const Meta& meta = c.meta[op->a.index];
  uint64_t offset = op->immediate;
  bool narrow = (op->aux & kNarrowAddress) != 0;
  if (narrow) {
    alignas(64) uint32_t room[kLanes];
    const uint32_t* values = read_lanes<uint32_t>(c, op->a, room);
    for (int i = 0; i < kLanes; ++i) out.lanes[i] = static_cast<uint32_t>(values[i] + offset);
  } else {
    alignas(64) uint64_t room[kLanes];
    const uint64_t* values = read_lanes<uint64_t>(c, op->a, room);
    for (int i = 0; i < kLanes; ++i) out.lanes[i] = values[i] + offset;
  }
  out.base = narrow ? static_cast<uint32_t>(meta.base + offset) : meta.base + offset;
  out.stride = meta.stride;
  uint64_t last = out.base + static_cast<uint64_t>(out.stride * (kLanes - 1));
  bool wraps = narrow && last > UINT32_MAX;
  out.is_vector = meta.is_vector || wraps;
  return find_range(c, bytes, out);
}

/// Addresses of the window .shared::cluster become generic ones.
bool open_window(const Attempt& attempt, LaneAddresses& out) {
  Context& c = attempt.c;
  Block& own = *c.block;
  const Block* block = nullptr;
  bool one_block = true;
  int first = std::countr_zero(c.mask);
  uint64_t delta = 0;
  out.region = Region::kShared;
  out.lo = ~uint64_t{0};
  out.hi = 0;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uint64_t address = out.lanes[lane];
    if ((address & (attempt.bytes - 1)) != 0) {
      return refuse(attempt, Finding::Kind::kMisaligned, lane, address,
                    fmt::format("not a multiple of {}", attempt.bytes));
    }
    std::optional<uint32_t> rank = rank_of_window(own, address);
    if (!rank) {
      return refuse(attempt, Finding::Kind::kIllegalAddress, lane, address,
                    fmt::format("block {} of a cluster of {}", (address >> kSharedRankShift) - 1,
                                cluster_blocks(own)));
    }
    auto place = shared_place(own, static_cast<uint32_t>(address));
    if (!place || place->offset + attempt.bytes > place->block->shared_bytes) {
      if (*rank != own.cluster_rank) return refuse_block(attempt, lane, address, *rank);
      return refuse(attempt, Finding::Kind::kOutOfBounds, lane, address,
                    fmt::format("offset {} in {} bytes of shared memory", shared_offset(address),
                                c.shared_bytes));
    }
    if (place->block != &own) out.region = Region::kCluster;
    one_block = one_block && (lane == first || place->block == block);
    block = place->block;
    delta = place->address - address;
    out.lanes[lane] = place->address;
    out.lo = std::min(out.lo, place->address);
    out.hi = std::max(out.hi, place->address + attempt.bytes);
  }
  for (uint32_t left = ~c.mask; left != 0; left &= left - 1) {
    out.lanes[std::countr_zero(left)] = out.lanes[first];
  }
  out.base += delta;
  out.is_vector = out.is_vector || !one_block;
  return true;
}

void add_to_lanes(LaneAddresses& out, uint64_t base, uint64_t stride) {
  for (uint64_t i = 0; i < kLanes; ++i) out.lanes[i] += base + i * stride;
}

/// One lane's address of a multimem operation; fills the site.
const Allocation* check_multicast(const Attempt& attempt, int lane, uint64_t address) {
  Context& c = attempt.c;
  Access access = c.memory->check(address, attempt.bytes, c.run->accessor, attempt.write, true);
  if (access.fault == AccessFault::kMulticast) {
    refuse(attempt, Finding::Kind::kIllegalAddress, lane, address,
           "not a multicast address: " + c.memory->describe(address));
    return nullptr;
  }
  if (access.fault != AccessFault::kNone) {
    refuse(attempt, finding_of(access.fault), lane, address, c.memory->describe(address));
    return nullptr;
  }
  AccessSite& site = c.sites[attempt.op->target];
  fill_site(c, site, access, attempt.write);
  site.target = MemoryAccess::Target::kMulticast;
  return access.allocation;
}

/// Distinct 32-byte sectors of accesses that are aligned to their size.
uint32_t count_sectors(const Context& c, const LaneAddresses& addresses, uint32_t bytes) {
  constexpr uint64_t kSector = 32;
  if (!addresses.is_vector) {
    uint64_t step = static_cast<uint64_t>(std::abs(addresses.stride));
    uint32_t whole = bytes > kSector ? bytes / kSector : 1;
    if (step == 0) return whole;
    if (step >= kSector) return whole * static_cast<uint32_t>(std::popcount(c.mask));
    if (is_run(c.mask)) {
      return static_cast<uint32_t>((addresses.hi - 1) / kSector - addresses.lo / kSector + 1);
    }
  }
  uint64_t sectors[kLanes];
  size_t count = 0;
  bool sorted = true;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    uint64_t sector = addresses.at(std::countr_zero(left)) / kSector;
    if (count != 0 && sectors[count - 1] == sector) continue;
    if (count != 0 && sectors[count - 1] > sector) sorted = false;
    sectors[count++] = sector;
  }
  if (!sorted) std::sort(sectors, sectors + count);
  return static_cast<uint32_t>(std::unique(sectors, sectors + count) - sectors);
}

/// Passes over the 32 banks of 4 bytes. Accesses of 8 and 16 bytes go in halves and quarters of a
/// warp; lanes that read the same word share it.
uint32_t count_passes(const Context& c, const LaneAddresses& addresses, uint32_t bytes) {
  constexpr uint64_t kBanks = 32;
  uint32_t words = std::max(bytes / 4, 1u);
  if (addresses.uniform()) return 1;
  if (!addresses.is_vector && addresses.stride == static_cast<int64_t>(bytes)) {
    uint32_t lanes = static_cast<uint32_t>(kLanes - std::countl_zero(c.mask));
    return std::max(1u, (lanes * words + kLanes - 1) / kLanes);
  }
  uint32_t lanes_at_once = kLanes / std::min(words, 8u);
  uint32_t passes = 0;
  for (uint32_t begin = 0; begin < kLanes; begin += lanes_at_once) {
    uint64_t touched[kLanes * 2];
    size_t count = 0;
    for (uint32_t lane = begin; lane < begin + lanes_at_once; ++lane) {
      if ((c.mask >> lane & 1) == 0) continue;
      uint64_t word = addresses.at(static_cast<int>(lane)) / 4;
      for (uint32_t k = 0; k < words; ++k) touched[count++] = word + k;
    }
    std::sort(touched, touched + count);
    count = static_cast<size_t>(std::unique(touched, touched + count) - touched);
    uint32_t of_bank[kBanks] = {};
    uint32_t most = 0;
    for (size_t i = 0; i < count; ++i) most = std::max(most, ++of_bank[touched[i] % kBanks]);
    passes += most;
  }
  return passes;
}

bool check_lanes(const Attempt& attempt, AccessSpace space, bool aligned, LaneAddresses& out) {
  Context& c = attempt.c;
  const MicroOp* op = attempt.op;
  bool write = attempt.write;
  if (space == AccessSpace::kShared) {
    if (!aligned || !is_inside(out.lo, out.hi, 0, c.shared_bytes)) {
      return refuse_offsets(attempt, out, space);
    }
    add_to_lanes(out, c.shared_base, 0);
    return allowed_at_once<AccessSpace::kShared>(c, op, write, out);
  }
  if (space == AccessSpace::kLocal) {
    if (!aligned || !is_inside(out.lo, out.hi, 0, c.local_lane_bytes)) {
      return refuse_offsets(attempt, out, space);
    }
    add_to_lanes(out, c.local_base, c.local_lane_bytes);
    return allowed_at_once<AccessSpace::kLocal>(c, op, write, out);
  }
  if (aligned) {
    if (allowed_at_once<AccessSpace::kGeneric>(c, op, write, out)) return true;
    if (find_scratch(attempt, out.lo, out.hi, out.region)) return true;
  }
  return check_generic_lanes(attempt, out);
}

}  // namespace

bool locate_lanes(Context& c, const MicroOp* op, AccessSpace space, uint32_t bytes, bool write,
                  LaneAddresses& out) {
  bool aligned = compute_lanes(c, op, bytes, out) == 0;
  Attempt attempt{c, op, bytes, write};
  if ((op->aux & kClusterWindow) != 0) return open_window(attempt, out);
  return check_lanes(attempt, space, aligned, out);
}

bool locate_chosen(Context& c, const MicroOp* op, AccessSpace space, uint32_t bytes, bool write,
                   LaneAddresses& out) {
  out.is_vector = true;
  bool aligned = find_range(c, bytes, out) == 0;
  return check_lanes({c, op, bytes, write}, space, aligned, out);
}

bool locate_multicast(Context& c, const MicroOp* op, uint32_t bytes, bool write, LaneAddresses& out,
                      const Allocation** allocations) {
  bool aligned = compute_lanes(c, op, bytes, out) == 0;
  out.region = Region::kSite;
  Attempt attempt{c, op, bytes, write};
  if (aligned && site_allows(c, c.sites[op->target], out.lo, out.hi, write)) {
    std::fill_n(allocations, kLanes, c.memory->find(out.lo));
    return true;
  }
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uint64_t address = out.lanes[lane];
    if ((address & (bytes - 1)) != 0) {
      return refuse(attempt, Finding::Kind::kMisaligned, lane, address,
                    fmt::format("not a multiple of {}", bytes));
    }
    allocations[lane] = check_multicast(attempt, lane, address);
    if (allocations[lane] == nullptr) return false;
  }
  return true;
}

void fill_access(Context& c, const MicroOp* op, const LaneAddresses& addresses, uint32_t bytes,
                 MemoryAccess::Kind kind) {
  MemoryAccess& access = c.access;
  auto lanes = static_cast<uint32_t>(std::popcount(c.mask));
  access.kind = kind;
  access.strong = (op->aux & kStrongAccess) != 0;
  access.device = static_cast<uint16_t>(c.run->accessor.device);
  access.bytes = lanes * bytes;
  access.conflicts = 0;
  access.address = addresses.lo;
  access.end = addresses.hi;
  switch (addresses.region) {
    case Region::kSite: {
      const AccessSite& site = c.sites[op->target];
      access.target = site.target;
      access.device = site.device;
      access.sectors = count_sectors(c, addresses, bytes);
      return;
    }
    case Region::kParameters:
      access.target = MemoryAccess::Target::kParam;
      access.sectors = 1;
      return;
    case Region::kShared:
      access.target = MemoryAccess::Target::kShared;
      access.sectors = 0;
      access.conflicts = count_passes(c, addresses, bytes);
      return;
    case Region::kCluster:
      access.target = MemoryAccess::Target::kShared;
      access.sectors = count_sectors(c, addresses, bytes);
      access.conflicts = count_passes(c, addresses, bytes);
      return;
    case Region::kLocal:
      // Hardware interleaves the lanes, so that equal offsets of all lanes are neighbours.
      access.target = MemoryAccess::Target::kLocal;
      access.sectors = (access.bytes + 31) / 32;
      return;
  }
}

void record_reads(Context& c, const LaneAddresses& addresses, uint32_t bytes) {
  constexpr uint32_t kMost = 16;
  if (addresses.region == Region::kParameters) return;
  auto read = [&](uint64_t lo, uint64_t hi) {
    for (; lo < hi; lo += kMost) {
      c.recorder->read(lo, static_cast<uint32_t>(std::min<uint64_t>(kMost, hi - lo)));
    }
  };
  if (addresses.uniform() ||
      (!addresses.is_vector && is_run(c.mask) && addresses.stride == static_cast<int64_t>(bytes))) {
    read(addresses.lo, addresses.hi);
    return;
  }
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    uint64_t address = addresses.at(std::countr_zero(left));
    read(address, address + bytes);
  }
}

}  // namespace cb::sim
