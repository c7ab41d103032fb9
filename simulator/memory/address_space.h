#pragma once

// All memory of the simulated cluster. A device address is the daemon's own pointer: the window is
// reserved once, without backing, and each rank allocates in an arena of its own. What may be
// touched is decided by the table of allocations alone: exact bounds, who owns it, and which rank's
// kernels on which device may reach it. Addresses are not reused before an arena is used up, so
// that a stale pointer is known for what it is.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/fd.h"
#include "simulator/protocol/protocol.h"

namespace cb::sim {

/// Arenas behind the last rank's. Shared and local memory of running blocks and the parameters of
/// launches lie in the scratch arena; see ScratchSpace.
inline constexpr unsigned kScratchArena = 31;
inline constexpr unsigned kMulticastArena = 30;
inline constexpr unsigned kMaxRanks = 24;
inline constexpr uint64_t kScratchBase = kWindowBase + kScratchArena * kArenaBytes;
inline constexpr uint64_t kMulticastBase = kWindowBase + kMulticastArena * kArenaBytes;

/// Who makes an access: the kernels (or copies) of a rank's process, on a device of the cluster.
/// Devices are numbered over the whole cluster here.
struct Accessor {
  int rank = 0;
  int device = 0;
};

struct Allocation {
  enum class Kind : uint8_t {
    kDevice,     ///< cudaMalloc
    kPinned,     ///< cudaHostAlloc: a memfd that the process maps too; reachable from its devices
    kPool,       ///< input or output buffer of the grader
    kSymmetric,  ///< cb_sym_alloc
    kModule,     ///< a __device__ or __constant__ variable
    kMulticast,  ///< an address that stands for one allocation on each of several devices
    kPhysical,   ///< cuMemCreate: where the bytes are; programs reach them through mappings only
    kReserved,   ///< cuMemAddressReserve: addresses where nothing is mapped
    kMapped,     ///< cuMemMap: a part of a reservation that shows physical memory
    kStreamOrdered,  ///< cudaMallocAsync: counted by its pool (hold), not by the device
  };
  uint64_t base = 0;
  uint64_t bytes = 0;     ///< exact; accesses at base + bytes are out of bounds
  uint64_t reserved = 0;  ///< bytes up to the next allocation, guard gap included
  Kind kind = Kind::kDevice;
  int rank = 0;                   ///< owner; for kMulticast of the first member
  int device = 0;                 ///< that holds it; of kPinned: the device current at allocation
  bool alive = true;              ///< false: freed; kept to explain stale pointers
  bool pending = false;           ///< the turn of its allocation in a stream has not come
  bool open = true;               ///< false: the grader's buffer while no step runs
  bool constant = false;          ///< kernels may not write it
  std::string label;              ///< "input 0", "variable table"; empty: by kind
  std::vector<uint64_t> members;  ///< kMulticast: base of each device's copy
  uint64_t home = 0;              ///< kMapped: address of the physical memory that is seen at base
  bool by_access = false;         ///< mapped by cuMemMap: the two masks say who may touch it
  uint64_t readers = 0;           ///< bit d: kernels of `rank` on device d of the cluster may read
  uint64_t writers = 0;           ///< as `readers`

  /// Of managed memory, which is of kPinned: it has moved to `device`.
  bool managed = false;
  bool at_device = false;

  uint64_t end() const { return base + bytes; }
  /// Devices reach it over PCIe.
  bool on_host() const { return kind == Kind::kPinned && !at_device; }
};

/// Why an access is refused.
enum class AccessFault : uint8_t {
  kNone,
  kUnmapped,     ///< no allocation is anywhere near
  kOutOfBounds,  ///< beyond the end (or before the start) of an allocation
  kUseAfterFree,
  kClosed,        ///< a grader's buffer, touched while no step runs
  kNotPermitted,  ///< another rank's memory that was not shared, or a peer without peer access
  kReadOnly,
  kUnordered,  ///< memory of cudaMallocAsync, before the turn of its allocation in a stream
  kMulticast,  ///< an ordinary access to a multicast address, or the reverse
};
const char* to_string(AccessFault fault);

/// What a lookup found. On success every access inside [lo, hi) is allowed as long as
/// `AddressSpace::epoch()` stays the same.
struct Access {
  AccessFault fault = AccessFault::kNone;
  uint64_t lo = 0;
  uint64_t hi = 0;
  const Allocation* allocation = nullptr;  ///< also of refused accesses where one is near
};

/// Quotas of one rank; exceeding one fails the request with cudaErrorMemoryAllocation.
struct MemoryQuota {
  uint64_t host_bytes = uint64_t{1} << 30;     ///< pinned memory of a rank
  uint64_t backed_bytes = uint64_t{12} << 30;  ///< of the whole cluster that is really touched
  uint32_t allocations = 65536;                ///< of a rank, alive
};

class AddressSpace {
 public:
  /// Reserves the window at kWindowBase. `device_bytes` is the capacity of each device,
  /// `device_of` maps are global device numbers. Throws Error(kSystem).
  AddressSpace(int num_ranks, int num_devices, uint64_t device_bytes, const MemoryQuota& quota);
  ~AddressSpace();
  AddressSpace(const AddressSpace&) = delete;
  AddressSpace& operator=(const AddressSpace&) = delete;

  /// What an allocation request may ask for.
  struct Request {
    int rank = 0;
    int device = 0;
    uint64_t bytes = 0;
    Allocation::Kind kind = Allocation::Kind::kDevice;
    std::string label;
    bool constant = false;
    bool zeroed = false;  ///< else small allocations start with garbage, as on hardware
  };
  /// 512-byte aligned, bytes may be 0. nullptr: the device or a quota is full. Garbage is a
  /// function of the address: all of it up to 1 MiB, the first and last 64 KiB of larger memory,
  /// whose middle reads as zero.
  const Allocation* allocate(const Request& request);
  /// Pinned memory: pages of a sealed memfd, mapped here at the same address; `fd` is to be sent.
  const Allocation* allocate_pinned(int rank, int device, uint64_t bytes, UniqueFd& fd);
  /// One address for all members (same bytes each). nullptr: a quota is full.
  const Allocation* allocate_multicast(const std::vector<const Allocation*>& members);
  /// False when `base` is not the base of a living allocation of that rank and kind.
  bool free(int rank, uint64_t base, Allocation::Kind kind);
  /// Frees all that a rank's process allocated itself (not the grader's buffers); `device` -1: on
  /// every device.
  void free_all(int rank, int device);

  /// The living or dead allocation that holds `address`, or nullptr.
  const Allocation* find(uint64_t address) const;
  /// Whether `accessor` may read or write [address, address + bytes). bytes >= 1.
  Access check(uint64_t address, uint64_t bytes, Accessor accessor, bool write,
               bool multicast = false) const;

  /// Permissions. A process reaches its own memory on the device that holds it; the grader's
  /// symmetric buffers are granted to all ranks when they are made.
  /// cudaIpcOpenMemHandle; nothing happens unless `base` is that of a living allocation.
  void grant(uint64_t base, int rank);
  void revoke(uint64_t base, int rank);
  bool granted(uint64_t base, int rank) const;
  void set_peer_access(int rank, int device, int peer, bool enabled);
  bool peer_access(int rank, int device, int peer) const;
  void grant_everyone(uint64_t base);  ///< the grader's symmetric buffers
  void set_open(uint64_t base, bool open);
  /// Device memory is reached from devices of the same node only, whatever is granted. Without this
  /// call all devices are on one node.
  void set_devices_per_node(int devices_per_node);

  /// Virtual memory management. Physical memory has a home address, which no program reaches; what
  /// is mapped at several addresses is one memory. These calls keep the addresses; what a program
  /// may ask for is decided by daemon/virtual_memory.h.
  /// nullptr: the device or a quota is full.
  const Allocation* allocate_physical(int rank, int device, uint64_t bytes);
  void release_physical(uint64_t home);
  /// `align` is a power of two. nullptr: the rank's addresses are used up.
  const Allocation* reserve(int rank, uint64_t bytes, uint64_t align);
  /// Nothing may be mapped there.
  void unreserve(uint64_t base);
  /// Shows `part.home` (of kMapped) or `part.members` (of kMulticast) at part.base inside a
  /// reservation; nothing may be mapped there. False: the host has no room for more mappings.
  bool map(const Allocation& part);
  /// Takes all parts in [lo, hi) away; none may reach beyond it.
  void unmap(uint64_t lo, uint64_t hi);
  /// Who may touch the parts in [lo, hi).
  void set_access(uint64_t lo, uint64_t hi, uint64_t readers, uint64_t writers);
  /// Where the byte at `address` really is: the same for all addresses at which it is mapped.
  uint64_t home_of(uint64_t address) const;
  bool has_mappings() const;

  /// Pools of stream-ordered memory take bytes of a device before they hand them out. False: there
  /// are not as many.
  bool hold(int device, uint64_t bytes);
  void give_back(int device, uint64_t bytes);
  /// Of living kStreamOrdered memory: which devices' kernels of `rank`, also another than the
  /// owner, may touch it.
  void set_masks(uint64_t base, int rank, uint64_t readers, uint64_t writers);
  void set_pending(uint64_t base, bool pending);
  /// Pinned memory becomes managed; it then moves to a device, or to the host (-1).
  void set_managed(uint64_t base);
  void set_resident(uint64_t base, int device);

  /// Changes whenever something that was allowed stops being so.
  uint32_t epoch() const { return epoch_; }

  uint64_t device_bytes_free(int device) const;
  uint64_t device_bytes_total() const { return device_bytes_; }

  /// What this process really occupies; sparse buffers count only where they were touched. Takes
  /// microseconds. allocate() looks now and then, but touching what exists takes no allocation:
  /// who runs kernels and copies asks over_quota() every few milliseconds of real time.
  uint64_t backed_bytes() const;
  bool over_quota() const;

  /// "input 0 of rank 2 + 4096 (of 16384 bytes)", "192 bytes past the end of cudaMalloc'd memory
  /// of rank 0 (1024 bytes)", "freed ...", "no allocation": for findings.
  std::string describe(uint64_t address) const;
  /// Device that holds `address` (for link routing); -1 for host memory or none.
  int device_of(uint64_t address) const;

 private:
  struct Arena;
  struct Permissions;

  bool within_quota(const Arena& arena, uint64_t bytes);
  /// Gives `wanted` an address that is a multiple of `align` at least; nullptr when the arena is
  /// used up.
  Allocation* place(Arena& arena, Allocation wanted, uint64_t align = 0);
  /// Undoes `place`: the host has no pages for it.
  void withdraw(Arena& arena, Allocation& made);
  /// A dead allocation with room for `reserved` bytes, for another life.
  Allocation* recycle(Arena& arena, uint64_t reserved, uint64_t align);
  void release(Allocation& allocation);
  /// The allocation with the highest base that is not above `address`, in its arena.
  const Allocation* preceding(uint64_t address) const;
  bool may_access(const Allocation& allocation, Accessor accessor, bool write) const;
  /// The mapped part that holds `address`; `reservation` when none does.
  const Allocation* part_at(uint64_t address, const Allocation* reservation) const;
  /// Where the mapped parts end that follow `first` without a gap and that `accessor` may touch;
  /// looks no farther than `end`.
  uint64_t end_of_parts(const Allocation& first, uint64_t end, Accessor accessor, bool write) const;

  uint32_t epoch_ = 1;
  uint64_t device_bytes_ = 0;
  std::unique_ptr<Permissions> permissions_;
  std::vector<std::unique_ptr<Arena>> arenas_;
  mutable const Allocation* last_found_ = nullptr;
};

/// Room in the scratch arena for shared memory, local memory and parameters. Blocks of equal size
/// are reused; content is undefined.
class ScratchSpace {
 public:
  ScratchSpace() = default;
  explicit ScratchSpace(uint64_t quota_bytes) : quota_bytes_(quota_bytes) {}

  /// 512-byte aligned with a guard gap; 0 when the arena or the quota is exhausted.
  uint64_t allocate(uint64_t bytes);
  /// `bytes` as they were asked for.
  void release(uint64_t base, uint64_t bytes);
  uint64_t bytes_in_use() const { return in_use_; }

 private:
  uint64_t quota_bytes_ = kArenaBytes;
  uint64_t kept_ = 0;                               ///< free, but still backed by pages
  std::map<uint64_t, std::vector<uint64_t>> free_;  ///< by rounded size
  uint64_t next_ = kScratchBase + 4096;
  uint64_t in_use_ = 0;
};

}  // namespace cb::sim
