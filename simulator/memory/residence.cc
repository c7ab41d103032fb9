// Memory whose state changes while it lives: that of stream-ordered pools, and managed memory.

#include "base/check.h"
#include "simulator/memory/address_space_state.h"

namespace cb::sim {

bool AddressSpace::hold(int device, uint64_t bytes) {
  uint64_t& used = permissions_->used_bytes[static_cast<size_t>(device)];
  if (bytes > device_bytes_ - used) return false;
  used += bytes;
  return true;
}

void AddressSpace::give_back(int device, uint64_t bytes) {
  uint64_t& used = permissions_->used_bytes[static_cast<size_t>(device)];
  CB_CHECK(bytes <= used, "a pool gives back what it took");
  used -= bytes;
}

void AddressSpace::set_masks(uint64_t base, int rank, uint64_t readers, uint64_t writers) {
  auto* found = const_cast<Allocation*>(find(base));
  CB_CHECK(found != nullptr && found->base == base && found->alive &&
               found->kind == Allocation::Kind::kStreamOrdered,
           "pools name living memory by its base");
  found->by_access = true;
  if (found->rank == rank) {
    found->readers = readers;
    found->writers = writers;
  } else {
    grant(base, rank);
    permissions_->guests[{base, rank}] = {readers, writers};
  }
  ++epoch_;
}

void AddressSpace::set_pending(uint64_t base, bool pending) {
  auto* found = const_cast<Allocation*>(find(base));
  if (found == nullptr || found->base != base || !found->alive) return;
  found->pending = pending;
}

void AddressSpace::set_managed(uint64_t base) {
  auto* found = const_cast<Allocation*>(find(base));
  CB_CHECK(found != nullptr && found->base == base && found->kind == Allocation::Kind::kPinned,
           "managed memory is pinned");
  found->managed = true;
  found->label = "managed memory";
}

void AddressSpace::set_resident(uint64_t base, int device) {
  auto* found = const_cast<Allocation*>(find(base));
  CB_CHECK(found != nullptr && found->base == base && found->managed, "managed memory moves");
  found->at_device = device >= 0;
  if (device >= 0) found->device = device;
  ++epoch_;
}

}  // namespace cb::sim
