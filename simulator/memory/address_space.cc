#include "simulator/memory/address_space.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/check.h"
#include "simulator/memory/address_space_state.h"

namespace cb::sim {
namespace {

constexpr uint64_t kAlign = 512;
constexpr uint64_t kPage = 4096;
/// At least a page, so that no two allocations share one.
constexpr uint64_t kGuard = kPage;
/// Fresh memory up to kFilledBytes is garbage as a whole, larger memory in kGarbageBytes at either
/// end: filling all of it would occupy what the program may never touch.
constexpr uint64_t kFilledBytes = uint64_t{1} << 20;
constexpr uint64_t kGarbageBytes = uint64_t{64} << 10;
/// Huge pages pay for large buffers and waste memory in small ones.
constexpr uint64_t kHugePageBytes = uint64_t{4} << 20;
/// How much is allocated between two looks at the daemon's resident memory.
constexpr uint64_t kBytesPerLook = uint64_t{64} << 20;
/// Allocations of an arena, dead ones included, before addresses of dead ones are used again, and
/// how many of those that died first are tried.
constexpr size_t kMaxRemembered = size_t{1} << 18;
constexpr size_t kRecycleAttempts = 1024;

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

bool is_pinned(const Allocation& allocation) {
  return allocation.kind == Allocation::Kind::kPinned;
}

uint64_t whole_pages(uint64_t bytes) { return round_up(std::max<uint64_t>(bytes, 1), kPage); }

bool wants_huge_pages(const Allocation& allocation) {
  return !is_pinned(allocation) && allocation.bytes >= kHugePageBytes;
}

const char* kind_name(Allocation::Kind kind) {
  switch (kind) {
    case Allocation::Kind::kDevice:
      return "device memory";
    case Allocation::Kind::kPinned:
      return "pinned memory";
    case Allocation::Kind::kPool:
      return "buffer";
    case Allocation::Kind::kSymmetric:
      return "symmetric memory";
    case Allocation::Kind::kModule:
      return "variable";
    case Allocation::Kind::kMulticast:
      return "multicast address";
    case Allocation::Kind::kPhysical:
      return "physical memory";
    case Allocation::Kind::kReserved:
      return "reserved addresses without a mapping";
    case Allocation::Kind::kMapped:
      return "mapped memory";
    case Allocation::Kind::kStreamOrdered:
      return "memory of cudaMallocAsync";
  }
  return "memory";
}

std::string name_of(const Allocation& allocation) {
  std::string what = allocation.label.empty() ? kind_name(allocation.kind) : allocation.label;
  return fmt::format("{} of rank {}", what, allocation.rank);
}

}  // namespace

const char* to_string(AccessFault fault) {
  switch (fault) {
    case AccessFault::kNone:
      return "allowed";
    case AccessFault::kUnmapped:
      return "no memory is there";
    case AccessFault::kOutOfBounds:
      return "out of bounds";
    case AccessFault::kUseAfterFree:
      return "use after free";
    case AccessFault::kClosed:
      return "the step has not started or is over";
    case AccessFault::kNotPermitted:
      return "not shared with this rank and device";
    case AccessFault::kReadOnly:
      return "read-only";
    case AccessFault::kUnordered:
      return "nothing orders the access after the allocation in its stream";
    case AccessFault::kMulticast:
      return "multicast addresses are for multimem instructions only, and those for nothing else";
  }
  return "refused";
}

AddressSpace::AddressSpace(int num_ranks, int num_devices, uint64_t device_bytes,
                           const MemoryQuota& quota)
    : device_bytes_(device_bytes), permissions_(std::make_unique<Permissions>()) {
  CB_CHECK(num_ranks >= 1 && num_ranks <= static_cast<int>(kMaxRanks), "ranks have an arena each");
  permissions_->quota = quota;
  permissions_->num_ranks = num_ranks;
  permissions_->num_devices = num_devices;
  permissions_->devices_per_node = num_devices;
  permissions_->used_bytes.resize(static_cast<size_t>(num_devices));
  for (unsigned i = 0; i <= kScratchArena; ++i) {
    auto arena = std::make_unique<Arena>();
    arena->next = kWindowBase + i * kArenaBytes + kGuard;
    arena->end = kWindowBase + (i + 1) * kArenaBytes;
    arenas_.push_back(std::move(arena));
  }
}

AddressSpace::~AddressSpace() = default;

uint64_t AddressSpace::backed_bytes() const { return permissions_->meter.bytes(); }

bool AddressSpace::over_quota() const { return backed_bytes() > permissions_->quota.backed_bytes; }

bool AddressSpace::within_quota(const Arena& arena, uint64_t bytes) {
  if (arena.living >= permissions_->quota.allocations || bytes > kArenaBytes) return false;
  uint64_t limit = permissions_->quota.backed_bytes;
  permissions_->allocated_since_look += bytes;
  if (permissions_->allocated_since_look >= kBytesPerLook || permissions_->resident > limit) {
    permissions_->allocated_since_look = 0;
    permissions_->resident = backed_bytes();
  }
  return permissions_->resident <= limit;
}

Allocation* AddressSpace::recycle(Arena& arena, uint64_t reserved, uint64_t align) {
  size_t attempts = std::min(kRecycleAttempts, arena.dead.size());
  for (size_t i = 0; i < attempts; ++i) {
    Allocation* dead = arena.dead[i];
    if (dead->reserved < reserved || dead->base % align != 0) continue;
    arena.dead.erase(arena.dead.begin() + static_cast<std::ptrdiff_t>(i));
    if (last_found_ == dead) last_found_ = nullptr;
    return dead;
  }
  return nullptr;
}

Allocation* AddressSpace::place(Arena& arena, Allocation wanted, uint64_t align) {
  bool pages = is_pinned(wanted) || wants_huge_pages(wanted) || align >= kPage;
  align = std::max(align, pages ? kPage : kAlign);
  // A mapping of its own shares no page with the next allocation.
  wanted.reserved = (pages ? whole_pages(wanted.bytes) : round_up(wanted.bytes, kAlign)) + kGuard;
  wanted.base = round_up(arena.next, align);
  Allocation* made = nullptr;
  if (wanted.base + wanted.reserved > arena.end || arena.allocations.size() >= kMaxRemembered) {
    made = recycle(arena, wanted.reserved, align);
    if (made == nullptr) return nullptr;
    wanted.base = made->base;
    wanted.reserved = made->reserved;
    *made = std::move(wanted);
  } else {
    arena.next = wanted.base + wanted.reserved;
    arena.allocations.push_back(std::make_unique<Allocation>(std::move(wanted)));
    made = arena.allocations.back().get();
  }
  ++arena.living;
  return made;
}

void AddressSpace::withdraw(Arena& arena, Allocation& made) {
  made.alive = false;
  --arena.living;
  arena.dead.push_back(&made);
}

const Allocation* AddressSpace::allocate(const Request& request) {
  CB_CHECK(request.rank >= 0 && request.rank < permissions_->num_ranks, "no such rank");
  CB_CHECK(request.device >= 0 && request.device < permissions_->num_devices, "no such device");
  Arena& arena = *arenas_[static_cast<size_t>(request.rank)];
  uint64_t& used = permissions_->used_bytes[static_cast<size_t>(request.device)];
  // Its pool has counted it.
  bool is_pooled = request.kind == Allocation::Kind::kStreamOrdered;
  if ((!is_pooled && request.bytes > device_bytes_ - used) || !within_quota(arena, request.bytes))
    return nullptr;
  Allocation* made = place(arena, {.bytes = request.bytes,
                                   .kind = request.kind,
                                   .rank = request.rank,
                                   .device = request.device,
                                   .pending = is_pooled,
                                   .constant = request.constant,
                                   .label = request.label});
  if (made == nullptr) return nullptr;
  if (!is_pooled) used += request.bytes;
  if (wants_huge_pages(*made))
    permissions_->pages.prefer_huge(made->base, whole_pages(made->bytes));
  if (!request.zeroed) {
    uint64_t head = made->bytes <= kFilledBytes ? made->bytes : kGarbageBytes;
    uint64_t tail = made->bytes <= kFilledBytes ? 0 : kGarbageBytes;
    fill_garbage(made->base, head);
    fill_garbage(made->end() - tail, tail);
  }
  return made;
}

const Allocation* AddressSpace::allocate_pinned(int rank, int device, uint64_t bytes,
                                                UniqueFd& fd) {
  CB_CHECK(rank >= 0 && rank < permissions_->num_ranks, "no such rank");
  Arena& arena = *arenas_[static_cast<size_t>(rank)];
  uint64_t room = permissions_->quota.host_bytes - arena.pinned_bytes;
  if (bytes > room || whole_pages(bytes) > room || !within_quota(arena, whole_pages(bytes))) {
    return nullptr;
  }
  UniqueFd file = sealed_memfd("pinned", whole_pages(bytes));
  Allocation* made = place(
      arena, {.bytes = bytes, .kind = Allocation::Kind::kPinned, .rank = rank, .device = device});
  if (made == nullptr) return nullptr;
  if (!permissions_->pages.map_file(made->base, whole_pages(bytes), file.get())) {
    withdraw(arena, *made);
    return nullptr;
  }
  arena.pinned_bytes += whole_pages(bytes);
  fd = std::move(file);
  return made;
}

const Allocation* AddressSpace::allocate_multicast(const std::vector<const Allocation*>& members) {
  CB_CHECK(!members.empty(), "a multicast address stands for something");
  Arena& arena = *arenas_[kMulticastArena];
  const Allocation& first = *members.front();
  if (!within_quota(arena, first.bytes)) return nullptr;
  Allocation wanted{.bytes = first.bytes,
                    .kind = Allocation::Kind::kMulticast,
                    .rank = first.rank,
                    .device = first.device,
                    .label = first.label.empty() ? "" : first.label + " (multicast)"};
  for (const Allocation* member : members) {
    CB_CHECK(member->bytes == first.bytes, "the copies behind a multicast address are alike");
    wanted.members.push_back(member->base);
  }
  return place(arena, std::move(wanted));
}

bool AddressSpace::free(int rank, uint64_t base, Allocation::Kind kind) {
  auto* found = const_cast<Allocation*>(find(base));
  if (found == nullptr || found->base != base || found->rank != rank || found->kind != kind ||
      !found->alive) {
    return false;
  }
  release(*found);
  return true;
}

void AddressSpace::release(Allocation& allocation) {
  allocation.alive = false;
  ++epoch_;
  Arena& arena = *arenas_[(allocation.base - kWindowBase) / kArenaBytes];
  --arena.living;
  arena.dead.push_back(&allocation);
  permissions_->granted.erase(allocation.base);
  auto guests = permissions_->guests.lower_bound({allocation.base, 0});
  while (guests != permissions_->guests.end() && guests->first.first == allocation.base) {
    guests = permissions_->guests.erase(guests);
  }
  if (allocation.kind == Allocation::Kind::kMulticast ||
      allocation.kind == Allocation::Kind::kReserved) {
    return;
  }
  bool special = is_pinned(allocation) || wants_huge_pages(allocation) ||
                 allocation.kind == Allocation::Kind::kPhysical;
  uint64_t bytes = special ? whole_pages(allocation.bytes) : allocation.bytes;
  permissions_->pages.discard(allocation.base, bytes, special);
  if (is_pinned(allocation)) {
    arena.pinned_bytes -= bytes;
  } else if (allocation.kind != Allocation::Kind::kStreamOrdered) {
    permissions_->used_bytes[static_cast<size_t>(allocation.device)] -= allocation.bytes;
  }
}

void AddressSpace::free_all(int rank, int device) {
  for (auto& allocation : arenas_[static_cast<size_t>(rank)]->allocations) {
    bool is_ours = allocation->kind == Allocation::Kind::kDevice ||
                   allocation->kind == Allocation::Kind::kPinned ||
                   allocation->kind == Allocation::Kind::kModule ||
                   (allocation->kind == Allocation::Kind::kReserved && device < 0);
    if (!allocation->alive || !is_ours) continue;
    if (device >= 0 && allocation->device != device) continue;
    release(*allocation);
  }
}

const Allocation* AddressSpace::find(uint64_t address) const {
  const Allocation* before = preceding(address);
  if (before == nullptr || address < before->end()) return before;
  // A pointer to an allocation of no bytes is still a pointer to it.
  return before->base == address ? before : nullptr;
}

const Allocation* AddressSpace::preceding(uint64_t address) const {
  if (last_found_ != nullptr && address - last_found_->base < last_found_->reserved) {
    return last_found_;
  }
  if (address < kWindowBase || address >= kScratchBase) return nullptr;
  const auto& all = arenas_[(address - kWindowBase) / kArenaBytes]->allocations;
  auto after = std::upper_bound(
      all.begin(), all.end(), address,
      [](uint64_t wanted, const auto& allocation) { return wanted < allocation->base; });
  if (after == all.begin()) return nullptr;
  const Allocation* found = std::prev(after)->get();
  if (found->kind == Allocation::Kind::kReserved && found->alive) return part_at(address, found);
  last_found_ = found;
  return found;
}

bool AddressSpace::may_access(const Allocation& allocation, Accessor accessor, bool write) const {
  bool is_own = allocation.rank == accessor.rank;
  if (allocation.by_access) {
    uint64_t allowed = write ? allocation.writers : allocation.readers;
    if (is_own) return (allowed >> accessor.device & 1) != 0;
    auto guest = permissions_->guests.find({allocation.base, accessor.rank});
    if (guest == permissions_->guests.end()) return false;
    allowed = write ? guest->second.second : guest->second.first;
    return (allowed >> accessor.device & 1) != 0;
  }
  if (is_own && allocation.device == accessor.device) return true;
  if (is_pinned(allocation)) return is_own;
  int per_node = permissions_->devices_per_node;
  if (allocation.device / per_node != accessor.device / per_node) return false;
  if (granted(allocation.base, accessor.rank)) return true;
  return is_own && allocation.kind != Allocation::Kind::kModule &&
         peer_access(accessor.rank, accessor.device, allocation.device);
}

Access AddressSpace::check(uint64_t address, uint64_t bytes, Accessor accessor, bool write,
                           bool multicast) const {
  uint64_t end = address + bytes;
  const Allocation* found = preceding(address);
  if (end < address || found == nullptr || address >= found->base + found->reserved) {
    // Just below an allocation is out of its bounds, too.
    const Allocation* next = end < address ? nullptr : preceding(address + kGuard);
    if (next != nullptr && next->base > address) {
      return {.fault = AccessFault::kOutOfBounds, .allocation = next};
    }
    return {.fault = AccessFault::kUnmapped};
  }
  Access access{.lo = found->base, .hi = found->end(), .allocation = found};
  bool is_multicast = found->kind == Allocation::Kind::kMulticast;
  if (found->kind == Allocation::Kind::kMapped && end > found->end()) {
    access.hi = end_of_parts(*found, end, accessor, write);
  }
  if (!found->alive) {
    access.fault = AccessFault::kUseAfterFree;
  } else if (found->kind == Allocation::Kind::kReserved ||
             found->kind == Allocation::Kind::kPhysical) {
    access.fault = AccessFault::kUnmapped;
  } else if (end > access.hi) {
    access.fault = AccessFault::kOutOfBounds;
  } else if (is_multicast != multicast) {
    access.fault = AccessFault::kMulticast;
  } else if (found->pending) {
    access.fault = AccessFault::kUnordered;
  } else if (found->by_access && !may_access(*found, accessor, write)) {
    access.fault = AccessFault::kNotPermitted;
  } else if (is_multicast && found->by_access) {
    // Until every device has bound memory there, the address stands for nothing.
    if (found->members.empty()) access.fault = AccessFault::kUnmapped;
  } else if (is_multicast) {
    for (uint64_t member : found->members) {
      Access one = check(member + (address - found->base), bytes, accessor, write);
      if (one.fault != AccessFault::kNone) access.fault = one.fault;
    }
  } else if (!may_access(*found, accessor, write)) {
    access.fault = AccessFault::kNotPermitted;
  } else if (!found->open) {
    access.fault = AccessFault::kClosed;
  } else if (write && found->constant) {
    access.fault = AccessFault::kReadOnly;
  }
  return access;
}

void AddressSpace::grant(uint64_t base, int rank) {
  const Allocation* found = find(base);
  if (found == nullptr || found->base != base || !found->alive) return;
  permissions_->granted[base].set(static_cast<size_t>(rank));
}

void AddressSpace::revoke(uint64_t base, int rank) {
  if (permissions_->guests.erase({base, rank}) != 0) ++epoch_;
  auto found = permissions_->granted.find(base);
  if (found == permissions_->granted.end()) return;
  found->second.reset(static_cast<size_t>(rank));
  ++epoch_;
}

bool AddressSpace::granted(uint64_t base, int rank) const {
  auto found = permissions_->granted.find(base);
  return found != permissions_->granted.end() && found->second[static_cast<size_t>(rank)];
}

void AddressSpace::grant_everyone(uint64_t base) {
  for (int rank = 0; rank < permissions_->num_ranks; ++rank) grant(base, rank);
}

void AddressSpace::set_peer_access(int rank, int device, int peer, bool enabled) {
  if (enabled) {
    permissions_->peers.emplace(rank, device, peer);
    return;
  }
  permissions_->peers.erase({rank, device, peer});
  ++epoch_;
}

bool AddressSpace::peer_access(int rank, int device, int peer) const {
  return device == peer || permissions_->peers.contains({rank, device, peer});
}

void AddressSpace::set_open(uint64_t base, bool open) {
  auto* found = const_cast<Allocation*>(find(base));
  CB_CHECK(found != nullptr && found->base == base, "the grader names buffers by their base");
  if (found->open && !open) ++epoch_;
  found->open = open;
}

void AddressSpace::set_devices_per_node(int devices_per_node) {
  CB_CHECK(devices_per_node >= 1, "a node has a device");
  permissions_->devices_per_node = devices_per_node;
  ++epoch_;
}

uint64_t AddressSpace::device_bytes_free(int device) const {
  return device_bytes_ - permissions_->used_bytes[static_cast<size_t>(device)];
}

std::string AddressSpace::describe(uint64_t address) const {
  const Allocation* near = preceding(address);
  if (near != nullptr && address < near->base + near->reserved) {
    std::string freed = near->alive ? "" : "freed ";
    if (address < near->end() || address == near->base) {
      return fmt::format("{}{} + {} (of {} bytes)", freed, name_of(*near), address - near->base,
                         near->bytes);
    }
    return fmt::format("{} bytes past the end of {}{} ({} bytes)", address - near->end(), freed,
                       name_of(*near), near->bytes);
  }
  const Allocation* next = preceding(address + kGuard);
  if (next != nullptr && next->base > address) {
    return fmt::format("{} bytes before {} ({} bytes)", next->base - address, name_of(*next),
                       next->bytes);
  }
  if (address < kPage) return address == 0 ? "a null pointer" : fmt::format("null + {}", address);
  if (address >= kScratchBase && address < kWindowBase + kWindowBytes) {
    return fmt::format("{:#x}, in shared or local memory or parameters", address);
  }
  return fmt::format("{:#x}, where no memory is", address);
}

int AddressSpace::device_of(uint64_t address) const {
  const Allocation* found = find(address);
  if (found == nullptr || found->on_host()) return -1;
  return found->device;
}

}  // namespace cb::sim
