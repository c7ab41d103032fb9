#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

struct Block;
struct FunctionCode;
struct Launch;
struct Warp;
class Engine;

/// Why a group of lanes stopped running.
enum class Stop : uint8_t {
  kNone,
  kYield,     ///< must wait until Context::now, then goes on
  kSwitch,    ///< another group of the warp should run, or the group merged or ended
  kBlocked,   ///< waits for a barrier, for other lanes, or is parked
  kFault,     ///< the finding is recorded; the kernel is dead
};

/// What a memory operation touched, for the timing model. Filled by memory operations in timed
/// mode only.
struct MemoryAccess {
  enum class Kind : uint8_t { kNone, kLoad, kStore, kAtomic, kReduction };
  enum class Target : uint8_t { kShared, kLocal, kDevice, kPinned, kMulticast, kParam };
  Kind kind = Kind::kNone;
  Target target = Target::kDevice;
  bool strong = false;
  uint16_t device = 0;        ///< that holds the memory
  uint32_t sectors = 0;       ///< distinct 32-byte sectors
  uint32_t bytes = 0;         ///< requested by the lanes
  uint32_t conflicts = 0;     ///< shared: passes over the banks
  uint64_t address = 0;       ///< lowest
  uint64_t end = 0;           ///< one past the highest
};

/// The state that handlers work on: one group of lanes of one warp. The executor loads it when it
/// switches groups.
struct Context {
  Meta* meta = nullptr;           ///< slots of the current frame
  std::byte* vectors = nullptr;   ///< vector storage of the current frame, 64-byte aligned
  uint32_t* predicates = nullptr; ///< one bit per lane
  uint32_t mask = 0;              ///< lanes that execute this operation
  /// No live lane outside `mask` can see this frame's registers: results may overwrite all lanes.
  bool full = false;
  bool timed = false;
  Stop stop = Stop::kNone;

  uint32_t group_mask = 0;        ///< lanes of the group, before the guard
  Time now = 0;                   ///< virtual time of this group
  const FunctionCode* code = nullptr;
  Warp* warp = nullptr;
  Block* block = nullptr;
  Launch* launch = nullptr;
  Engine* engine = nullptr;
  MemoryAccess access;
};

/// Whether lanes outside `mask` are free to be overwritten, given the lanes that ended.
inline bool covers(uint32_t mask, uint32_t dead) { return (mask | dead) == kAllLanes; }

}  // namespace cb::sim
