// Virtual memory management. The pages of physical memory are mapped once at their home, and once
// more wherever a program maps them, so that the engine goes on using addresses as pointers.

#include <algorithm>

#include "base/check.h"
#include "simulator/memory/address_space_state.h"

namespace cb::sim {
namespace {

constexpr uint64_t kPage = 4096;
constexpr uint64_t kHomeAlign = uint64_t{2} << 20;
/// What fresh memory is filled with at either end, as cudaMalloc's.
constexpr uint64_t kGarbageBytes = uint64_t{64} << 10;

}  // namespace

const Allocation* AddressSpace::allocate_physical(int rank, int device, uint64_t bytes) {
  CB_CHECK(rank >= 0 && rank < permissions_->num_ranks, "no such rank");
  CB_CHECK(device >= 0 && device < permissions_->num_devices, "no such device");
  CB_CHECK(bytes > 0 && bytes % kPage == 0, "physical memory is whole pages");
  Arena& arena = *arenas_[static_cast<size_t>(rank)];
  uint64_t& used = permissions_->used_bytes[static_cast<size_t>(device)];
  if (bytes > device_bytes_ - used || !within_quota(arena, bytes)) return nullptr;
  Allocation* made = place(
      arena, {.bytes = bytes, .kind = Allocation::Kind::kPhysical, .rank = rank, .device = device},
      kHomeAlign);
  if (made == nullptr) return nullptr;
  if (!permissions_->pages.map_shared(made->base, bytes)) {
    withdraw(arena, *made);
    return nullptr;
  }
  used += bytes;
  uint64_t filled = std::min(kGarbageBytes, bytes);
  fill_garbage(made->base, filled);
  fill_garbage(made->end() - filled, filled);
  return made;
}

void AddressSpace::release_physical(uint64_t home) {
  auto* found = const_cast<Allocation*>(find(home));
  CB_CHECK(found != nullptr && found->base == home && found->alive &&
               found->kind == Allocation::Kind::kPhysical,
           "physical memory is released once");
  release(*found);
}

const Allocation* AddressSpace::reserve(int rank, uint64_t bytes, uint64_t align) {
  CB_CHECK(rank >= 0 && rank < permissions_->num_ranks, "no such rank");
  Arena& arena = *arenas_[static_cast<size_t>(rank)];
  if (!within_quota(arena, 0) || bytes > kArenaBytes || align > kArenaBytes) return nullptr;
  return place(arena, {.bytes = bytes, .kind = Allocation::Kind::kReserved, .rank = rank},
               std::max(align, kPage));
}

void AddressSpace::unreserve(uint64_t base) {
  auto* found = const_cast<Allocation*>(find(base));
  CB_CHECK(found != nullptr && found->base == base && found->alive &&
               found->kind == Allocation::Kind::kReserved,
           "a reservation without mappings ends once");
  release(*found);
}

bool AddressSpace::map(const Allocation& part) {
  if (part.kind == Allocation::Kind::kMapped &&
      !permissions_->pages.alias(part.base, part.bytes, part.home)) {
    return false;
  }
  auto made = std::make_unique<Allocation>(part);
  made->reserved = part.bytes;
  made->by_access = true;
  bool is_new = permissions_->parts.emplace(part.base, std::move(made)).second;
  CB_CHECK(is_new, "two mappings at one address");
  return true;
}

void AddressSpace::unmap(uint64_t lo, uint64_t hi) {
  auto& parts = permissions_->parts;
  auto first = parts.lower_bound(lo);
  auto last = parts.lower_bound(hi);
  for (auto at = first; at != last; ++at) {
    const Allocation& part = *at->second;
    if (last_found_ == &part) last_found_ = nullptr;
    if (part.kind == Allocation::Kind::kMapped) {
      permissions_->pages.discard(part.base, part.bytes, true);
    }
  }
  parts.erase(first, last);
  ++epoch_;
}

void AddressSpace::set_access(uint64_t lo, uint64_t hi, uint64_t readers, uint64_t writers) {
  auto& parts = permissions_->parts;
  for (auto at = parts.lower_bound(lo); at != parts.end() && at->first < hi; ++at) {
    at->second->readers = readers;
    at->second->writers = writers;
  }
  ++epoch_;
}

const Allocation* AddressSpace::part_at(uint64_t address, const Allocation* reservation) const {
  const auto& parts = permissions_->parts;
  auto after = parts.upper_bound(address);
  if (after == parts.begin()) return reservation;
  const Allocation* part = std::prev(after)->second.get();
  if (address - part->base >= part->bytes) return reservation;
  last_found_ = part;
  return part;
}

uint64_t AddressSpace::end_of_parts(const Allocation& first, uint64_t end, Accessor accessor,
                                    bool write) const {
  const auto& parts = permissions_->parts;
  uint64_t reached = first.end();
  for (auto at = parts.find(reached); reached < end && at != parts.end(); ++at) {
    const Allocation& part = *at->second;
    bool follows = part.base == reached && part.kind == Allocation::Kind::kMapped &&
                   may_access(part, accessor, write);
    if (!follows) break;
    reached = part.end();
  }
  return reached;
}

uint64_t AddressSpace::home_of(uint64_t address) const {
  const Allocation* found = find(address);
  if (found == nullptr || found->kind != Allocation::Kind::kMapped) return address;
  return found->home + (address - found->base);
}

bool AddressSpace::has_mappings() const { return !permissions_->parts.empty(); }

}  // namespace cb::sim
