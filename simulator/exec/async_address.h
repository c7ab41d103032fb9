#pragma once

// What asynchronous operations and mbarriers name: addresses, counts and sizes of each lane, taken
// from the operation's list, and checked one by one. Such operations are few and large.

#include <optional>
#include <string>

#include "simulator/exec/async_copy.h"
#include "simulator/exec/context.h"
#include "simulator/exec/op_query.h"
#include "simulator/exec/shared_window.h"
#include "simulator/memory/address_space.h"

namespace cb::sim {

/// How an address of shared memory is written.
enum class SharedWindow : uint8_t { kOwn, kCluster, kGeneric };

/// Entries of the operation's list that an address takes; see add_listed_address().
inline constexpr uint32_t kAddressEntries = 2;

/// Appends the memory operand `index` to the operation's list: a base and a constant offset.
/// `nth` is its number among the instruction's listed addresses, up to 4.
void add_listed_address(const OpQuery& query, OpSpec& spec, size_t index, unsigned nth);

/// The lanes' values of an address that add_listed_address() put in the list at `entry`.
class ListedAddress {
 public:
  ListedAddress(Context& c, const MicroOp* op, uint32_t entry, unsigned nth);
  uint64_t of(int lane) const { return lanes_[lane]; }

 private:
  alignas(64) uint64_t lanes_[kLanes];
};

/// The lanes' values of another operand in the list.
template <typename T>
class ListedValue {
 public:
  ListedValue(Context& c, const MicroOp* op, uint32_t entry)
      : values_(read_lanes<T>(c, c.code->lists[op->list + entry], room_)) {}
  T of(int lane) const { return values_[lane]; }

 private:
  alignas(64) T room_[kLanes];
  const T* values_;
};

/// What an access is for, for findings: "the mbarrier", "the destination".
struct AsyncRange {
  const char* what = "";
  uint64_t bytes = 0;
  uint32_t align = 1;
  bool write = false;
};

/// Where [address, address + range.bytes) of shared memory is. nullopt after a fault.
std::optional<SharedPlace> locate_shared(Context& c, const MicroOp* op, int lane, uint64_t address,
                                         SharedWindow window, const AsyncRange& range);

/// Whether global memory may be touched there; the allocation. nullptr after a fault.
const Allocation* locate_global(Context& c, const MicroOp* op, int lane, uint64_t address,
                                const AsyncRange& range);

/// The mbarrier at an address of shared memory.
std::optional<SharedPlace> locate_barrier(Context& c, const MicroOp* op, int lane, uint64_t address,
                                          SharedWindow window);

/// Takes .shared, .shared::cta or .shared::cluster; generic without.
SharedWindow take_shared_window(OpQuery& query);

}  // namespace cb::sim
