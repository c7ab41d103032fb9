#include "simulator/daemon/virtual_memory.h"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <set>

#include "base/check.h"
#include "base/error.h"

namespace cb::sim {
namespace {

/// Work after a bind is bounded by the product of these.
constexpr size_t kMaxBindings = 128;
constexpr size_t kMaxMulticastMappings = 16;  ///< of a process
constexpr size_t kMaxMappings = 4096;         ///< of a process
constexpr size_t kMaxHandles = 65536;
constexpr size_t kMaxExports = 256;  ///< of a process; each is a descriptor of this one

bool is_aligned(uint64_t value) { return value % kGranularity == 0; }

bool is_inside(uint64_t offset, uint64_t bytes, uint64_t whole) {
  return bytes > 0 && bytes <= whole && offset <= whole - bytes;
}

std::pair<uint64_t, uint64_t> identity_of(int fd) {
  struct stat status {};
  if (::fstat(fd, &status) != 0) throw system_error("fstat of an exported descriptor");
  return {status.st_dev, status.st_ino};
}

UniqueFd path_to(const UniqueFd& file) {
  std::string path = "/proc/self/fd/" + std::to_string(file.get());
  UniqueFd token(::open(path.c_str(), O_PATH | O_CLOEXEC));
  if (!token) throw system_error("open " + path);
  return token;
}

}  // namespace

MemoryObject::~MemoryObject() {
  if (home != 0) memory.release_physical(home);
}

VirtualMemory::VirtualMemory(AddressSpace& memory, int num_ranks)
    : memory_(memory), ranks_(static_cast<size_t>(num_ranks)) {}

MemoryObjectPtr VirtualMemory::find(int rank, uint64_t handle) const {
  auto found = state(rank).handles.find(handle);
  return found == state(rank).handles.end() ? nullptr : found->second.object;
}

uint64_t VirtualMemory::add_handle(int rank, const MemoryObjectPtr& object) {
  RankState& mine = state(rank);
  auto known = mine.handle_of.find(object.get());
  if (known != mine.handle_of.end()) {
    ++mine.handles.at(known->second).count;
    return known->second;
  }
  if (mine.handles.size() >= kMaxHandles) return 0;
  uint64_t handle = mine.next_handle++;
  mine.handles.emplace(handle, Handle{object});
  mine.handle_of.emplace(object.get(), handle);
  return handle;
}

bool VirtualMemory::release(int rank, uint64_t handle) {
  RankState& mine = state(rank);
  auto found = mine.handles.find(handle);
  if (found == mine.handles.end()) return false;
  if (--found->second.count == 0) {
    mine.handle_of.erase(found->second.object.get());
    mine.handles.erase(found);
  }
  return true;
}

MemoryObjectPtr VirtualMemory::create(int rank, int device, int node, uint64_t bytes,
                                      uint32_t handle_types) {
  if (state(rank).handles.size() >= kMaxHandles) return nullptr;
  const Allocation* home = memory_.allocate_physical(rank, device, bytes);
  if (home == nullptr) return nullptr;
  auto object = std::make_shared<MemoryObject>(memory_);
  object->bytes = bytes;
  object->node = node;
  object->handle_types = handle_types;
  object->device = device;
  object->home = home->base;
  return object;
}

bool VirtualMemory::unreserve(int rank, uint64_t base, uint64_t bytes) {
  const Allocation* found = memory_.find(base);
  bool is_free = found != nullptr && found->alive && found->base == base &&
                 found->kind == Allocation::Kind::kReserved && found->rank == rank &&
                 found->bytes == bytes;
  const Mappings& mappings = state(rank).mappings;
  auto inside = mappings.lower_bound(base);
  if (!is_free || (inside != mappings.end() && inside->first < base + bytes)) return false;
  memory_.unreserve(base);
  return true;
}

bool VirtualMemory::can_map(int rank, uint64_t address, uint64_t bytes, uint64_t offset,
                            const MemoryObject& object) const {
  // The driver documents that memory is mapped from its start.
  if (!object.is_multicast() && offset != 0) return false;
  if (!is_aligned(address) || !is_aligned(bytes) || !is_aligned(offset) ||
      !is_inside(offset, bytes, object.bytes)) {
    return false;
  }
  const Allocation* found = memory_.find(address);
  if (found == nullptr || !found->alive || found->kind != Allocation::Kind::kReserved ||
      found->rank != rank || !is_inside(address - found->base, bytes, found->bytes)) {
    return false;
  }
  const Mappings& mappings = state(rank).mappings;
  auto next = mappings.lower_bound(address);
  return next == mappings.end() || next->first >= address + bytes;
}

bool VirtualMemory::map(int rank, uint64_t address, uint64_t bytes, uint64_t offset,
                        const MemoryObjectPtr& object) {
  const Mappings& mappings = state(rank).mappings;
  if (mappings.size() >= kMaxMappings) return false;
  auto multicasts = std::count_if(mappings.begin(), mappings.end(), [](const auto& entry) {
    return entry.second.object->is_multicast();
  });
  if (object->is_multicast() && static_cast<size_t>(multicasts) >= kMaxMulticastMappings) {
    return false;
  }
  Mapping mapping{.bytes = bytes, .offset = offset, .object = object};
  if (!show(rank, address, mapping)) return false;
  state(rank).mappings.emplace(address, std::move(mapping));
  return true;
}

bool VirtualMemory::show(int rank, uint64_t address, const Mapping& mapping) {
  if (mapping.object->is_multicast()) {
    show_multicast(rank, address, mapping);
    return true;
  }
  return memory_.map({.base = address,
                      .bytes = mapping.bytes,
                      .kind = Allocation::Kind::kMapped,
                      .rank = rank,
                      .device = mapping.object->device,
                      .home = mapping.object->home + mapping.offset});
}

/// Between two ends of bindings, an address stands for the same memory on each device.
void VirtualMemory::show_multicast(int rank, uint64_t address, const Mapping& mapping) {
  const MemoryObject& object = *mapping.object;
  uint64_t first = mapping.offset, last = mapping.offset + mapping.bytes;
  std::set<uint64_t> cuts{first, last};
  for (const MemoryObject::Binding& one : object.bindings) {
    for (uint64_t cut : {one.offset, one.offset + one.bytes}) {
      if (cut > first && cut < last) cuts.insert(cut);
    }
  }
  for (auto cut = cuts.begin(); std::next(cut) != cuts.end(); ++cut) {
    Allocation part{.base = address + (*cut - first),
                    .bytes = *std::next(cut) - *cut,
                    .kind = Allocation::Kind::kMulticast,
                    .rank = rank,
                    .device = object.devices.front(),
                    .readers = mapping.readers,
                    .writers = mapping.writers};
    part.members.resize(object.devices.size());
    size_t num_bound = 0;
    for (const MemoryObject::Binding& one : object.bindings) {
      if (!is_inside(*cut - one.offset, part.bytes, one.bytes)) continue;
      part.members[one.member] = one.memory->home + one.memory_offset + (*cut - one.offset);
      ++num_bound;
    }
    if (num_bound != part.members.size()) part.members.clear();
    bool is_shown = memory_.map(part);
    CB_CHECK(is_shown, "a multicast address needs no pages");
  }
}

void VirtualMemory::show_again(const MemoryObject& multicast) {
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    for (const auto& [address, mapping] : ranks_[rank].mappings) {
      if (mapping.object.get() != &multicast) continue;
      memory_.unmap(address, address + mapping.bytes);
      show_multicast(static_cast<int>(rank), address, mapping);
    }
  }
}

std::pair<VirtualMemory::Mappings::iterator, VirtualMemory::Mappings::iterator>
VirtualMemory::exactly(int rank, uint64_t address, uint64_t bytes) {
  Mappings& mappings = state(rank).mappings;
  auto first = mappings.find(address);
  uint64_t reached = address;
  auto last = first;
  while (last != mappings.end() && last->first == reached && reached - address < bytes) {
    reached += last->second.bytes;
    ++last;
  }
  if (bytes == 0 || reached - address != bytes) return {mappings.end(), mappings.end()};
  return {first, last};
}

bool VirtualMemory::unmap(int rank, uint64_t address, uint64_t bytes) {
  auto [first, last] = exactly(rank, address, bytes);
  if (first == last) return false;
  memory_.unmap(address, address + bytes);
  state(rank).mappings.erase(first, last);
  return true;
}

bool VirtualMemory::set_access(int rank, uint64_t address, uint64_t bytes, int device, bool read,
                               bool write) {
  auto [first, last] = exactly(rank, address, bytes);
  if (first == last) return false;
  bool is_near = std::all_of(first, last, [&](const auto& entry) {
    const MemoryObject& object = *entry.second.object;
    return !object.is_multicast() ||
           std::find(object.devices.begin(), object.devices.end(), device) != object.devices.end();
  });
  if (!is_near) return false;
  uint64_t bit = uint64_t{1} << device;
  for (auto at = first; at != last; ++at) {
    Mapping& mapping = at->second;
    mapping.readers = read ? mapping.readers | bit : mapping.readers & ~bit;
    mapping.writers = write ? mapping.writers | bit : mapping.writers & ~bit;
    memory_.set_access(at->first, at->first + mapping.bytes, mapping.readers, mapping.writers);
  }
  return true;
}

MemoryObjectPtr VirtualMemory::mapped_at(int rank, uint64_t address, uint64_t& offset) const {
  const Mappings& mappings = state(rank).mappings;
  auto after = mappings.upper_bound(address);
  if (after == mappings.begin()) return nullptr;
  const auto& [base, mapping] = *std::prev(after);
  if (address - base >= mapping.bytes) return nullptr;
  offset = mapping.offset + (address - base);
  return mapping.object;
}

bool VirtualMemory::add_device(MemoryObject& multicast, int device) {
  std::vector<int>& devices = multicast.devices;
  bool is_known = std::find(devices.begin(), devices.end(), device) != devices.end();
  if (is_known || multicast.is_complete()) return false;
  devices.push_back(device);
  return true;
}

bool VirtualMemory::can_bind(const MemoryObject& multicast, uint64_t offset,
                             const MemoryObject& object, uint64_t memory_offset,
                             uint64_t bytes) const {
  if (object.is_multicast() || !is_aligned(offset) || !is_aligned(memory_offset) ||
      !is_aligned(bytes) || !is_inside(offset, bytes, multicast.bytes) ||
      !is_inside(memory_offset, bytes, object.bytes)) {
    return false;
  }
  const std::vector<int>& devices = multicast.devices;
  if (std::find(devices.begin(), devices.end(), object.device) == devices.end()) return false;
  // What other processes can reach is bound to what they could reach themselves.
  if (multicast.handle_types != 0 && object.handle_types == 0) return false;
  return std::none_of(multicast.bindings.begin(), multicast.bindings.end(), [&](const auto& one) {
    return one.device == object.device && offset < one.offset + one.bytes &&
           one.offset < offset + bytes;
  });
}

bool VirtualMemory::bind(MemoryObject& multicast, uint64_t offset, const MemoryObjectPtr& object,
                         uint64_t memory_offset, uint64_t bytes) {
  if (multicast.bindings.size() >= kMaxBindings) return false;
  const std::vector<int>& devices = multicast.devices;
  auto place = std::find(devices.begin(), devices.end(), object->device);
  multicast.bindings.push_back({.device = object->device,
                                .member = static_cast<size_t>(place - devices.begin()),
                                .offset = offset,
                                .bytes = bytes,
                                .memory = object,
                                .memory_offset = memory_offset});
  show_again(multicast);
  return true;
}

bool VirtualMemory::unbind(MemoryObject& multicast, int device, uint64_t offset, uint64_t bytes) {
  auto& bindings = multicast.bindings;
  auto found = std::find_if(bindings.begin(), bindings.end(), [&](const auto& one) {
    return one.device == device && one.offset == offset && one.bytes == bytes;
  });
  if (found == bindings.end()) return false;
  // Lives until no address stands for it any more.
  MemoryObjectPtr kept = found->memory;
  bindings.erase(found);
  show_again(multicast);
  return true;
}

UniqueFd VirtualMemory::export_object(int rank, const MemoryObjectPtr& object) {
  auto found = std::find_if(exports_.begin(), exports_.end(), [&](const auto& entry) {
    return entry.second.object == object && entry.second.rank == rank;
  });
  if (found == exports_.end()) {
    auto count = std::count_if(exports_.begin(), exports_.end(),
                               [rank](const auto& entry) { return entry.second.rank == rank; });
    if (static_cast<size_t>(count) >= kMaxExports) return UniqueFd();
    UniqueFd file = sealed_memfd("cuda memory", 0);
    if (::fchmod(file.get(), 0) != 0) throw system_error("fchmod of an exported descriptor");
    auto key = identity_of(file.get());
    found = exports_.emplace(key, Export{object, rank, std::move(file)}).first;
  }
  return path_to(found->second.file);
}

MemoryObjectPtr VirtualMemory::pool_object(int rank, uint64_t pool) const {
  for (const auto& [key, exported] : exports_) {
    if (exported.rank == rank && exported.object->pool == pool) return exported.object;
  }
  return nullptr;
}

UniqueFd VirtualMemory::another(int fd) const {
  auto found = exports_.find(identity_of(fd));
  return found == exports_.end() ? UniqueFd() : path_to(found->second.file);
}

MemoryObjectPtr VirtualMemory::object_of(int fd) const {
  auto found = exports_.find(identity_of(fd));
  return found == exports_.end() ? nullptr : found->second.object;
}

void VirtualMemory::release_rank(int rank, int device) {
  RankState& mine = state(rank);
  auto is_meant = [device](const MemoryObject& object) {
    return device < 0 || (!object.is_multicast() && object.device == device);
  };
  for (auto at = mine.mappings.begin(); at != mine.mappings.end();) {
    if (!is_meant(*at->second.object)) {
      ++at;
      continue;
    }
    memory_.unmap(at->first, at->first + at->second.bytes);
    at = mine.mappings.erase(at);
  }
  std::erase_if(mine.handle_of, [&](const auto& entry) { return is_meant(*entry.first); });
  std::erase_if(mine.handles, [&](const auto& entry) { return is_meant(*entry.second.object); });
  std::erase_if(exports_, [&](const auto& entry) {
    return entry.second.rank == rank && is_meant(*entry.second.object);
  });
}

}  // namespace cb::sim
