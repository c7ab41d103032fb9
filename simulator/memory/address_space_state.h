#pragma once

// What an AddressSpace knows, for the files that implement it.

#include <bitset>
#include <deque>
#include <set>
#include <tuple>
#include <unordered_map>

#include "simulator/memory/address_space.h"
#include "simulator/memory/pages.h"

namespace cb::sim {

struct AddressSpace::Arena {
  uint64_t next = 0;
  uint64_t end = 0;
  uint64_t pinned_bytes = 0;
  uint32_t living = 0;
  /// In order of address. Pointers stay valid.
  std::vector<std::unique_ptr<Allocation>> allocations;
  std::deque<Allocation*> dead;  ///< in the order of their deaths
};

struct AddressSpace::Permissions {
  MemoryQuota quota;
  int num_ranks = 0;
  int num_devices = 0;
  int devices_per_node = 0;
  std::vector<uint64_t> used_bytes;  ///< of each device
  std::unordered_map<uint64_t, std::bitset<kMaxRanks>> granted;
  /// By base and rank: readers and writers of another process's stream-ordered memory.
  std::map<std::pair<uint64_t, int>, std::pair<uint64_t, uint64_t>> guests;
  std::set<std::tuple<int, int, int>> peers;              ///< rank, device, peer
  std::map<uint64_t, std::unique_ptr<Allocation>> parts;  ///< of reservations: what is mapped
  WindowPages pages;
  ResidentMeter meter;
  uint64_t allocated_since_look = 0;
  uint64_t resident = 0;
};

}  // namespace cb::sim
