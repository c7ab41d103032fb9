#pragma once

// What the programs know of virtual memory management: handles, reservations, mappings, multicast
// objects and exported descriptors. Where bytes are and who may touch them is AddressSpace's.
//
// An object lives as long as a handle, a mapping or a binding of any process names it, and while a
// process lives that exported it: a descriptor may be on its way to another process.

#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "simulator/memory/address_space.h"

namespace cb::sim {

/// Of physical memory, mappings and multicast objects; also what drivers recommend for memory.
inline constexpr uint64_t kGranularity = uint64_t{2} << 20;
inline constexpr uint32_t kPosixDescriptor = 1;  ///< CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR

struct MemoryObject {
  explicit MemoryObject(AddressSpace& memory_) : memory(memory_) {}
  ~MemoryObject();
  MemoryObject(const MemoryObject&) = delete;
  MemoryObject& operator=(const MemoryObject&) = delete;

  /// Of a multicast object: a device's memory in [offset, offset + bytes).
  struct Binding {
    int device = 0;
    size_t member = 0;  ///< which of `devices` that is
    uint64_t offset = 0;
    uint64_t bytes = 0;
    std::shared_ptr<MemoryObject> memory;
    uint64_t memory_offset = 0;
  };

  AddressSpace& memory;
  uint64_t bytes = 0;
  int node = 0;
  uint32_t handle_types = 0;
  int device = 0;     ///< of memory
  uint64_t home = 0;  ///< of memory; 0: this is a multicast object
  uint64_t pool = 0;  ///< an exported memory pool: it stands for that, and nothing else
  uint32_t num_devices = 0;
  std::vector<int> devices;  ///< of a multicast object, in the order in which they joined
  std::vector<Binding> bindings;

  bool is_multicast() const { return home == 0 && pool == 0; }
  bool is_complete() const { return devices.size() == num_devices; }
};
using MemoryObjectPtr = std::shared_ptr<MemoryObject>;

class VirtualMemory {
 public:
  VirtualMemory(AddressSpace& memory, int num_ranks);

  /// nullptr: the process has no such handle.
  MemoryObjectPtr find(int rank, uint64_t handle) const;
  /// 0: the process has too many.
  uint64_t add_handle(int rank, const MemoryObjectPtr& object);
  /// False: there is no such handle.
  bool release(int rank, uint64_t handle);
  /// nullptr: no room.
  MemoryObjectPtr create(int rank, int device, int node, uint64_t bytes, uint32_t handle_types);

  /// The rest returns false where CUDA says invalid value.
  bool unreserve(int rank, uint64_t base, uint64_t bytes);
  bool can_map(int rank, uint64_t address, uint64_t bytes, uint64_t offset,
               const MemoryObject& object) const;
  /// After can_map. False: the host has no room for it.
  bool map(int rank, uint64_t address, uint64_t bytes, uint64_t offset,
           const MemoryObjectPtr& object);
  bool unmap(int rank, uint64_t address, uint64_t bytes);
  bool set_access(int rank, uint64_t address, uint64_t bytes, int device, bool read, bool write);
  /// What is mapped at `address`, and where in it that is.
  MemoryObjectPtr mapped_at(int rank, uint64_t address, uint64_t& offset) const;

  bool add_device(MemoryObject& multicast, int device);
  bool can_bind(const MemoryObject& multicast, uint64_t offset, const MemoryObject& object,
                uint64_t memory_offset, uint64_t bytes) const;
  /// After can_bind. False: too many bindings.
  bool bind(MemoryObject& multicast, uint64_t offset, const MemoryObjectPtr& object,
            uint64_t memory_offset, uint64_t bytes);
  bool unbind(MemoryObject& multicast, int device, uint64_t offset, uint64_t bytes);

  /// A descriptor that stands for the object. It is a path to a sealed, empty file without
  /// permissions: it holds nothing, and processes that share it cannot talk through it. None
  /// when the process has too many. Throws Error(kSystem).
  UniqueFd export_object(int rank, const MemoryObjectPtr& object);
  /// What the process has exported for its memory pool; nullptr: nothing.
  MemoryObjectPtr pool_object(int rank, uint64_t pool) const;
  /// A descriptor like `fd`, if export_object made that; none if it did not.
  UniqueFd another(int fd) const;
  /// The object for which a descriptor stands that export_object made; nullptr: none. Known by the
  /// file that it is open on, which nobody else can make.
  MemoryObjectPtr object_of(int fd) const;

  /// The process is gone: its handles, mappings and exports end. `device` other than -1: only what
  /// lies on that device. Reservations are AddressSpace::free_all's.
  void release_rank(int rank, int device);

 private:
  struct Handle {
    MemoryObjectPtr object;
    uint64_t count = 1;
  };
  struct Mapping {
    uint64_t bytes = 0;
    uint64_t offset = 0;
    MemoryObjectPtr object;
    uint64_t readers = 0;
    uint64_t writers = 0;
  };
  struct Export {
    MemoryObjectPtr object;
    int rank = 0;
    UniqueFd file;
  };
  using Mappings = std::map<uint64_t, Mapping>;  ///< by address
  struct RankState {
    std::map<uint64_t, Handle> handles;
    std::unordered_map<const MemoryObject*, uint64_t> handle_of;
    Mappings mappings;
    uint64_t next_handle = 1;
  };

  RankState& state(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  const RankState& state(int rank) const { return ranks_[static_cast<size_t>(rank)]; }
  /// The mappings that are exactly [address, address + bytes) together; an empty range: they are
  /// not.
  std::pair<Mappings::iterator, Mappings::iterator> exactly(int rank, uint64_t address,
                                                            uint64_t bytes);
  bool show(int rank, uint64_t address, const Mapping& mapping);
  void show_multicast(int rank, uint64_t address, const Mapping& mapping);
  /// After a binding of `multicast` changed.
  void show_again(const MemoryObject& multicast);

  AddressSpace& memory_;
  std::vector<RankState> ranks_;
  std::map<std::pair<uint64_t, uint64_t>, Export> exports_;  ///< by device and inode
};

}  // namespace cb::sim
