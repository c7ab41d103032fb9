#include "simulator/daemon/memory_pools.h"

#include <algorithm>

namespace cb::sim {
namespace {

constexpr size_t kMaxPools = 1024;  ///< of a process

uint64_t whole_pieces(uint64_t bytes) {
  return (bytes + kPoolPieceBytes - 1) / kPoolPieceBytes * kPoolPieceBytes;
}

uint64_t bit(int device) { return uint64_t{1} << device; }

}  // namespace

MemoryPool* MemoryPools::add(MemoryPool pool) {
  auto count = std::count_if(pools_.begin(), pools_.end(),
                             [&pool](const auto& entry) { return entry.second.rank == pool.rank; });
  if (static_cast<size_t>(count) >= kMaxPools) return nullptr;
  pool.id = next_++;
  pool.readers = pool.writers = bit(pool.device);
  return &pools_.emplace(pool.id, std::move(pool)).first->second;
}

MemoryPool* MemoryPools::create(int rank, int device, uint32_t handle_types, uint64_t max_bytes) {
  return add(
      {.rank = rank, .device = device, .handle_types = handle_types, .max_bytes = max_bytes});
}

MemoryPool* MemoryPools::default_pool(int rank, int device) {
  for (auto& [id, pool] : pools_) {
    if (pool.is_default && pool.rank == rank && pool.device == device) return &pool;
  }
  return add({.rank = rank, .device = device, .is_default = true});
}

MemoryPool* MemoryPools::import(int rank, const MemoryPool& exported) {
  return add({.rank = rank,
              .device = exported.device,
              .handle_types = exported.handle_types,
              .origin = exported.id});
}

MemoryPool* MemoryPools::find(int rank, uint64_t id) {
  MemoryPool* found = find_any(id);
  return found != nullptr && found->rank == rank && !found->destroyed ? found : nullptr;
}

MemoryPool* MemoryPools::find_any(uint64_t id) {
  auto found = pools_.find(id);
  return found == pools_.end() ? nullptr : &found->second;
}

void MemoryPools::destroy(MemoryPool& pool) {
  pool.destroyed = true;
  pool.threshold = 0;
  uint64_t id = pool.id;
  trim(pool, 0);
  bool in_use = std::any_of(allocations_.begin(), allocations_.end(), [id](const auto& entry) {
    return entry.second.pool == id ||
           std::any_of(entry.second.imports.begin(), entry.second.imports.end(),
                       [id](const auto& imported) { return imported.second == id; });
  });
  if (!in_use) pools_.erase(id);
}

void MemoryPools::trim(MemoryPool& pool, uint64_t keep) {
  uint64_t waiting = 0;
  for (const auto& pending : pool.pending) waiting += pending->bytes;
  uint64_t wanted = std::max(whole_pieces(pool.used + waiting), keep);
  if (wanted >= pool.reserved) return;
  memory_.give_back(pool.device, pool.reserved - wanted);
  pool.reserved = wanted;
}

void MemoryPools::release_idle(int rank) {
  for (auto& [id, pool] : pools_) {
    if (pool.rank == rank) trim(pool, pool.threshold);
  }
}

bool MemoryPools::grow(MemoryPool& pool, uint64_t bytes) {
  for (uint64_t amount : {whole_pieces(bytes), bytes}) {
    if (pool.max_bytes != 0 && amount > pool.max_bytes - std::min(pool.max_bytes, pool.reserved)) {
      continue;
    }
    if (!memory_.hold(pool.device, amount)) {
      // Before memory is out, the process's other pools give back what they keep.
      for (auto& [id, other] : pools_) {
        if (other.rank == pool.rank && other.device == pool.device) trim(other, 0);
      }
      if (!memory_.hold(pool.device, amount)) continue;
    }
    pool.reserved += amount;
    pool.reserved_high = std::max(pool.reserved_high, pool.reserved);
    return true;
  }
  return false;
}

MemoryPools::Made MemoryPools::allocate(MemoryPool& pool, const Stream& stream, uint64_t bytes) {
  Made made;
  uint64_t missing = bytes, waiting = 0;
  // Room freed earlier in the same stream comes first, then what nobody waits for.
  std::vector<std::pair<MemoryPool::PendingFree*, uint64_t>> taken;
  for (const auto& pending : pool.pending) {
    waiting += pending->bytes;
    if (pending->stream != &stream || missing == 0) continue;
    uint64_t part = std::min(missing, pending->bytes);
    taken.emplace_back(pending.get(), part);
    missing -= part;
  }
  uint64_t idle = pool.reserved - pool.used - waiting;
  missing -= std::min(missing, idle);
  if (missing > 0 && grow(pool, missing)) {
    made.grew = true;
    missing = 0;
  }
  for (const auto& pending : pool.pending) {
    // Memory is short: wait for frees in other streams, as the driver may.
    if (missing == 0 || pending->stream == &stream ||
        pool.reuse[static_cast<size_t>(PoolAttribute::kAllowInternalDependencies) - 1] == 0) {
      continue;
    }
    uint64_t part = std::min(missing, pending->bytes);
    taken.emplace_back(pending.get(), part);
    missing -= part;
    if (auto work = pending->work.lock()) made.after.push_back(work);
  }
  if (missing > 0) return made;
  const Allocation* allocation = memory_.allocate({.rank = pool.rank,
                                                   .device = pool.device,
                                                   .bytes = bytes,
                                                   .kind = Allocation::Kind::kStreamOrdered});
  if (allocation == nullptr) return made;
  for (auto& [pending, part] : taken) pending->bytes -= part;
  std::erase_if(pool.pending, [](const auto& pending) { return pending->bytes == 0; });
  pool.used += bytes;
  pool.used_high = std::max(pool.used_high, pool.used);
  Pooled& pooled = allocations_[allocation->base];
  pooled = Pooled{.pool = pool.id, .bytes = bytes};
  show(allocation->base, pooled);
  made.allocation = allocation;
  return made;
}

bool MemoryPools::begin_free(int rank, uint64_t base, const Stream* stream,
                             const std::shared_ptr<Work>& work) {
  auto found = allocations_.find(base);
  if (found == allocations_.end()) return false;
  Pooled& pooled = found->second;
  if (pooled.imports.contains(rank)) return pooled.freeing_imports.insert(rank).second;
  MemoryPool* pool = find_any(pooled.pool);
  if (pool == nullptr || pool->rank != rank || pooled.freeing) return false;
  pooled.freeing = true;
  pool->used -= pooled.bytes;
  pooled.pending = std::make_shared<MemoryPool::PendingFree>(
      MemoryPool::PendingFree{.stream = stream, .bytes = pooled.bytes, .work = work});
  pool->pending.push_back(pooled.pending);
  return true;
}

void MemoryPools::end_free(int rank, uint64_t base) {
  auto found = allocations_.find(base);
  if (found == allocations_.end()) return;
  if (found->second.imports.erase(rank) != 0) {
    found->second.freeing_imports.erase(rank);
    memory_.revoke(base, rank);
    return;
  }
  MemoryPool* pool = find_any(found->second.pool);
  std::erase(pool->pending, found->second.pending);
  memory_.free(rank, base, Allocation::Kind::kStreamOrdered);
  allocations_.erase(found);
  if (pool->destroyed) destroy(*pool);
}

const MemoryPool* MemoryPools::pool_of(uint64_t base) const {
  auto found = allocations_.find(base);
  if (found == allocations_.end()) return nullptr;
  auto pool = pools_.find(found->second.pool);
  return pool == pools_.end() ? nullptr : &pool->second;
}

bool MemoryPools::import_pointer(const MemoryPool& imported, uint64_t base) {
  auto found = allocations_.find(base);
  if (found == allocations_.end() || found->second.pool != imported.origin ||
      found->second.freeing) {
    return false;
  }
  if (!found->second.imports.emplace(imported.rank, imported.id).second) return false;
  show(base, found->second);
  return true;
}

void MemoryPools::show(uint64_t base, const Pooled& pooled) {
  if (const MemoryPool* pool = find_any(pooled.pool)) {
    memory_.set_masks(base, pool->rank, pool->readers, pool->writers);
  }
  for (const auto& [rank, view] : pooled.imports) {
    if (const MemoryPool* pool = find_any(view)) {
      memory_.set_masks(base, rank, pool->readers, pool->writers);
    }
  }
}

void MemoryPools::set_access(MemoryPool& pool, int device, bool read, bool write) {
  pool.readers = read ? pool.readers | bit(device) : pool.readers & ~bit(device);
  pool.writers = write ? pool.writers | bit(device) : pool.writers & ~bit(device);
  for (const auto& [base, pooled] : allocations_) {
    bool concerns = pooled.pool == pool.id;
    for (const auto& [rank, view] : pooled.imports) concerns |= view == pool.id;
    if (concerns) show(base, pooled);
  }
}

void MemoryPools::release_rank(int rank, int device) {
  auto is_meant = [rank, device](const MemoryPool& pool) {
    return pool.rank == rank && (device < 0 || pool.device == device);
  };
  for (auto at = allocations_.begin(); at != allocations_.end();) {
    auto imported = at->second.imports.find(rank);
    if (imported != at->second.imports.end() && is_meant(*find_any(imported->second))) {
      at->second.imports.erase(imported);
      at->second.freeing_imports.erase(rank);
      memory_.revoke(at->first, rank);
    }
    MemoryPool* pool = find_any(at->second.pool);
    if (!is_meant(*pool)) {
      ++at;
      continue;
    }
    memory_.free(rank, at->first, Allocation::Kind::kStreamOrdered);
    at = allocations_.erase(at);
  }
  for (auto& [id, pool] : pools_) {
    if (is_meant(pool)) memory_.give_back(pool.device, pool.reserved);
  }
  std::erase_if(pools_, [&](const auto& entry) { return is_meant(entry.second); });
}

}  // namespace cb::sim
