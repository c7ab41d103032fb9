#include "simulator/memory/address_space.h"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <bitset>
#include <cstdio>
#include <cstring>
#include <set>
#include <unordered_map>

#include "base/check.h"
#include "base/random.h"

namespace cb::sim {
namespace {

constexpr uint64_t kAlign = 512;
constexpr uint64_t kPage = 4096;
constexpr uint64_t kGuard = 4096;
/// Fresh memory up to this size is filled with garbage as a whole, larger memory at both ends.
constexpr uint64_t kGarbageBytes = uint64_t{64} << 10;
/// Huge pages pay for large buffers and waste memory in small ones.
constexpr uint64_t kHugePageBytes = uint64_t{4} << 20;
/// How often the daemon's resident memory is looked at.
constexpr uint64_t kBytesPerLook = uint64_t{64} << 20;

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

void fill_garbage(uint64_t base, uint64_t bytes) {
  CounterRandom random(base);
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t word = random.value(at);
    std::memcpy(pointer(base + at), &word, std::min<uint64_t>(8, bytes - at));
  }
}

uint64_t resident_bytes() {
  unsigned long pages = 0;
  unsigned long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  if (std::fscanf(file, "%lu %lu", &pages, &resident) != 2) resident = 0;
  std::fclose(file);
  return resident * kPage;
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
    case AccessFault::kMulticast:
      return "multicast addresses are for multimem instructions only, and those for nothing else";
  }
  return "refused";
}

struct AddressSpace::Arena {
  uint64_t next = 0;
  uint64_t end = 0;
  uint64_t pinned_bytes = 0;
  uint32_t living = 0;
  /// In order of address. Pointers stay valid.
  std::vector<std::unique_ptr<Allocation>> allocations;
};

struct AddressSpace::Permissions {
  MemoryQuota quota;
  int num_ranks = 0;
  int num_devices = 0;
  std::vector<uint64_t> used_bytes;  ///< of each device
  std::unordered_map<uint64_t, std::bitset<kMaxRanks>> granted;
  std::set<std::tuple<int, int, int>> peers;  ///< rank, device, peer
  uint64_t allocated_since_look = 0;
  uint64_t resident = 0;
};

AddressSpace::AddressSpace(int num_ranks, int num_devices, uint64_t device_bytes,
                           const MemoryQuota& quota)
    : device_bytes_(device_bytes), permissions_(std::make_unique<Permissions>()) {
  CB_CHECK(num_ranks >= 1 && num_ranks <= static_cast<int>(kMaxRanks), "ranks have an arena each");
  permissions_->quota = quota;
  permissions_->num_ranks = num_ranks;
  permissions_->num_devices = num_devices;
  permissions_->used_bytes.resize(static_cast<size_t>(num_devices));
  void* window = mmap(pointer(kWindowBase), kWindowBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  if (window == MAP_FAILED) throw system_error("reserve the window of device addresses");
  madvise(window, kWindowBytes, MADV_NOHUGEPAGE);
  madvise(window, kWindowBytes, MADV_DONTDUMP);
  for (unsigned i = 0; i <= kScratchArena; ++i) {
    auto arena = std::make_unique<Arena>();
    arena->next = kWindowBase + i * kArenaBytes + kGuard;
    arena->end = kWindowBase + (i + 1) * kArenaBytes;
    arenas_.push_back(std::move(arena));
  }
}

AddressSpace::~AddressSpace() { munmap(pointer(kWindowBase), kWindowBytes); }

bool AddressSpace::has_room(const Arena& arena, uint64_t bytes) {
  if (arena.living >= permissions_->quota.allocations) return false;
  if (bytes > kArenaBytes || arena.end - arena.next < round_up(bytes, kPage) + 2 * kGuard) {
    return false;
  }
  permissions_->allocated_since_look += bytes;
  if (permissions_->allocated_since_look >= kBytesPerLook) {
    permissions_->allocated_since_look = 0;
    permissions_->resident = resident_bytes();
  }
  return permissions_->resident <= permissions_->quota.backed_bytes;
}

Allocation* AddressSpace::append(Arena& arena, Allocation allocation, uint64_t align) {
  allocation.base = round_up(arena.next, align);
  allocation.reserved = round_up(allocation.bytes, kAlign) + kGuard;
  arena.next = allocation.base + allocation.reserved;
  ++arena.living;
  arena.allocations.push_back(std::make_unique<Allocation>(std::move(allocation)));
  return arena.allocations.back().get();
}

const Allocation* AddressSpace::allocate(const Request& request) {
  CB_CHECK(request.rank >= 0 && request.rank < permissions_->num_ranks, "no such rank");
  CB_CHECK(request.device >= 0 && request.device < permissions_->num_devices, "no such device");
  Arena& arena = *arenas_[static_cast<size_t>(request.rank)];
  uint64_t& used = permissions_->used_bytes[static_cast<size_t>(request.device)];
  if (request.bytes > device_bytes_ - used || !has_room(arena, request.bytes)) return nullptr;
  bool is_huge = request.bytes >= kHugePageBytes;
  Allocation* made = append(arena,
                            {.bytes = request.bytes,
                             .kind = request.kind,
                             .rank = request.rank,
                             .device = request.device,
                             .constant = request.constant,
                             .label = request.label},
                            is_huge ? kPage : kAlign);
  used += request.bytes;
  if (is_huge) madvise(pointer(made->base), round_up(made->bytes, kPage), MADV_HUGEPAGE);
  if (!request.zeroed) {
    uint64_t head = std::min(made->bytes, kGarbageBytes);
    fill_garbage(made->base, head);
    uint64_t tail = std::min(made->bytes - head, kGarbageBytes);
    fill_garbage(made->end() - tail, tail);
  }
  return made;
}

const Allocation* AddressSpace::allocate_pinned(int rank, int device, uint64_t bytes,
                                                UniqueFd& fd) {
  Arena& arena = *arenas_[static_cast<size_t>(rank)];
  uint64_t whole_pages = round_up(std::max<uint64_t>(bytes, 1), kPage);
  if (bytes > kArenaBytes || arena.pinned_bytes + whole_pages > permissions_->quota.host_bytes ||
      !has_room(arena, whole_pages)) {
    return nullptr;
  }
  fd = sealed_memfd("pinned", whole_pages);
  Allocation* made = append(
      arena, {.bytes = bytes, .kind = Allocation::Kind::kPinned, .rank = rank, .device = device},
      kPage);
  // The next allocation must not share a page with a mapping of the process.
  arena.next = std::max(arena.next, made->base + whole_pages + kGuard);
  made->reserved = arena.next - made->base;
  void* mapped = mmap(pointer(made->base), whole_pages, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_FIXED, fd.get(), 0);
  if (mapped == MAP_FAILED) throw system_error("map pinned memory");
  arena.pinned_bytes += whole_pages;
  return made;
}

const Allocation* AddressSpace::allocate_multicast(const std::vector<const Allocation*>& members) {
  CB_CHECK(!members.empty(), "a multicast address stands for something");
  Allocation allocation{
      .bytes = members.front()->bytes,
      .kind = Allocation::Kind::kMulticast,
      .rank = members.front()->rank,
      .device = members.front()->device,
      .label = members.front()->label.empty() ? "" : members.front()->label + " (multicast)"};
  for (const Allocation* member : members) allocation.members.push_back(member->base);
  return append(*arenas_[kMulticastArena], std::move(allocation), kAlign);
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
  permissions_->granted.erase(allocation.base);
  if (allocation.kind == Allocation::Kind::kMulticast) return;
  if (allocation.kind == Allocation::Kind::kPinned) {
    uint64_t whole_pages = round_up(std::max<uint64_t>(allocation.bytes, 1), kPage);
    arena.pinned_bytes -= whole_pages;
    void* mapped = mmap(pointer(allocation.base), whole_pages, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
    if (mapped == MAP_FAILED) throw system_error("unmap pinned memory");
    return;
  }
  permissions_->used_bytes[static_cast<size_t>(allocation.device)] -= allocation.bytes;
  uint64_t first = round_up(allocation.base, kPage);
  uint64_t last = allocation.end() / kPage * kPage;
  if (last > first) madvise(pointer(first), last - first, MADV_DONTNEED);
}

void AddressSpace::free_all(int rank, int device) {
  for (auto& allocation : arenas_[static_cast<size_t>(rank)]->allocations) {
    bool is_ours = allocation->kind == Allocation::Kind::kDevice ||
                   allocation->kind == Allocation::Kind::kPinned ||
                   allocation->kind == Allocation::Kind::kModule;
    if (!allocation->alive || !is_ours) continue;
    if (device >= 0 && allocation->device != device) continue;
    release(*allocation);
  }
}

const Allocation* AddressSpace::find(uint64_t address) const {
  if (address < kWindowBase || address >= kScratchBase) return nullptr;
  if (last_found_ != nullptr && address >= last_found_->base && address < last_found_->end()) {
    return last_found_;
  }
  const Allocation* before = preceding(address);
  if (before == nullptr || address >= before->end()) {
    // A pointer to an allocation of no bytes is still a pointer to it.
    return before != nullptr && before->base == address ? before : nullptr;
  }
  last_found_ = before;
  return before;
}

const Allocation* AddressSpace::preceding(uint64_t address) const {
  if (address < kWindowBase || address >= kScratchBase) return nullptr;
  const auto& all = arenas_[(address - kWindowBase) / kArenaBytes]->allocations;
  auto after = std::upper_bound(
      all.begin(), all.end(), address,
      [](uint64_t wanted, const auto& allocation) { return wanted < allocation->base; });
  return after == all.begin() ? nullptr : std::prev(after)->get();
}

bool AddressSpace::may_access(const Allocation& allocation, Accessor accessor) const {
  bool is_own = allocation.rank == accessor.rank;
  if (is_own && allocation.device == accessor.device) return true;
  if (allocation.kind == Allocation::Kind::kPinned) return is_own;
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
  if (!found->alive) {
    access.fault = AccessFault::kUseAfterFree;
  } else if (end > found->end()) {
    access.fault = AccessFault::kOutOfBounds;
  } else if (is_multicast != multicast) {
    access.fault = AccessFault::kMulticast;
  } else if (is_multicast) {
    for (uint64_t member : found->members) {
      Access one = check(member + (address - found->base), bytes, accessor, write);
      if (one.fault != AccessFault::kNone) access.fault = one.fault;
    }
  } else if (!may_access(*found, accessor)) {
    access.fault = AccessFault::kNotPermitted;
  } else if (!found->open) {
    access.fault = AccessFault::kClosed;
  } else if (write && found->constant) {
    access.fault = AccessFault::kReadOnly;
  }
  return access;
}

void AddressSpace::grant(uint64_t base, int rank) {
  permissions_->granted[base].set(static_cast<size_t>(rank));
}

void AddressSpace::revoke(uint64_t base, int rank) {
  auto found = permissions_->granted.find(base);
  if (found == permissions_->granted.end()) return;
  found->second.reset(static_cast<size_t>(rank));
  ++epoch_;
}

bool AddressSpace::granted(uint64_t base, int rank) const {
  auto found = permissions_->granted.find(base);
  return found != permissions_->granted.end() && found->second[static_cast<size_t>(rank)];
}

void AddressSpace::grant_everyone(uint64_t base) { permissions_->granted[base].set(); }

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
  return fmt::format("{:#x}, where no memory is", address);
}

int AddressSpace::device_of(uint64_t address) const {
  const Allocation* found = find(address);
  if (found == nullptr || found->kind == Allocation::Kind::kPinned) return -1;
  return found->device;
}

}  // namespace cb::sim
