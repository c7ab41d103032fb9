#pragma once

// Pools of stream-ordered memory (cudaMallocAsync): how much each holds of its device, what is in
// use, what has been freed in which stream, and which other processes may reach it. An allocation
// has its address at once, and may be touched from its turn in its stream until that of its free.
// Addresses are not used again soon, so that a stale pointer is known for what it is; what is
// reused is the room.

#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "simulator/daemon/work.h"
#include "simulator/memory/address_space.h"

namespace cb::sim {

/// What pools take from their device, and give back: as drivers do, in pieces of 32 MiB.
inline constexpr uint64_t kPoolPieceBytes = uint64_t{32} << 20;

/// cudaMemPoolAttr.
enum class PoolAttribute : uint64_t {
  kFollowEventDependencies = 1,
  kAllowOpportunistic,
  kAllowInternalDependencies,
  kReleaseThreshold,
  kReservedCurrent,
  kReservedHigh,
  kUsedCurrent,
  kUsedHigh,
};

struct MemoryPool {
  /// Room that a free has given back, before its turn: only its own stream may use it again.
  struct PendingFree {
    const Stream* stream = nullptr;
    uint64_t bytes = 0;
    std::weak_ptr<Work> work;
  };

  uint64_t id = 0;
  int rank = 0;
  int device = 0;  ///< global number
  uint32_t handle_types = 0;
  uint64_t max_bytes = 0;  ///< 0: no bound of its own
  bool is_default = false;
  bool destroyed = false;  ///< lives until its last allocation is freed
  uint64_t origin = 0;     ///< of an imported pool: the id of the exporter's
  uint64_t reuse[3] = {1, 1, 1};
  uint64_t threshold = 0;
  uint64_t reserved = 0, reserved_high = 0;
  uint64_t used = 0, used_high = 0;
  uint64_t readers = 0, writers = 0;  ///< bit d: kernels on device d of the cluster may
  std::vector<std::shared_ptr<PendingFree>> pending;
};

class MemoryPools {
 public:
  explicit MemoryPools(AddressSpace& memory) : memory_(memory) {}

  /// nullptr: the process has too many.
  MemoryPool* create(int rank, int device, uint32_t handle_types, uint64_t max_bytes);
  MemoryPool* default_pool(int rank, int device);
  /// A pool of another process, as this one sees it; nullptr: too many.
  MemoryPool* import(int rank, const MemoryPool& exported);
  /// nullptr: the process has no such pool.
  MemoryPool* find(int rank, uint64_t id);
  /// Also of another process; nullptr: it is gone.
  MemoryPool* find_any(uint64_t id);
  void destroy(MemoryPool& pool);
  /// Gives room back that is not in use, down to `keep` bytes in all.
  void trim(MemoryPool& pool, uint64_t keep);
  /// What a synchronisation does to all pools of a process.
  void release_idle(int rank);

  struct Made {
    const Allocation* allocation = nullptr;  ///< nullptr: memory is out
    bool grew = false;                       ///< the pool had to take more of the device
    WorkList after;                          ///< frees in other streams whose room it uses
  };
  Made allocate(MemoryPool& pool, const Stream& stream, uint64_t bytes);
  /// The process frees its pooled or imported memory at `base` in a stream; `work` will do it.
  /// False: there is no such memory, or its free is under way.
  bool begin_free(int rank, uint64_t base, const Stream* stream, const std::shared_ptr<Work>& work);
  /// The turn of that free has come.
  void end_free(int rank, uint64_t base);

  /// Whether the memory came from a pool, by whichever process.
  bool contains(uint64_t base) const { return allocations_.contains(base); }
  /// nullptr: none.
  const MemoryPool* pool_of(uint64_t base) const;
  /// False: not from the pool that was imported, or already there.
  bool import_pointer(const MemoryPool& imported, uint64_t base);
  void set_access(MemoryPool& pool, int device, bool read, bool write);

  /// The process is gone, or its device reset (-1: all).
  void release_rank(int rank, int device);

 private:
  struct Pooled {
    uint64_t pool = 0;
    uint64_t bytes = 0;
    bool freeing = false;
    std::shared_ptr<MemoryPool::PendingFree> pending;
    std::map<int, uint64_t> imports;  ///< by rank: its view of the pool
    std::set<int> freeing_imports;
  };
  MemoryPool* add(MemoryPool pool);
  bool grow(MemoryPool& pool, uint64_t bytes);
  void show(uint64_t base, const Pooled& pooled);

  AddressSpace& memory_;
  uint64_t next_ = 1;
  std::map<uint64_t, MemoryPool> pools_;
  std::map<uint64_t, Pooled> allocations_;  ///< by base
};

}  // namespace cb::sim
