#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

struct Block;
struct Frame;
struct FunctionCode;
struct Group;
struct KernelRun;
struct Warp;
struct EngineState;
class SpinRecorder;

class AddressSpace;
struct AccessSite;

/// Whether parked groups wait for memory, and roughly for which: a store to a line whose bit is
/// clear wakes nobody. Bit (address / 64) % kBits.
struct WatchFilter {
  static constexpr uint64_t kBits = 65536;
  uint32_t num_watches = 0;
  uint64_t bits[kBits / 64] = {};
};

/// Why a group of lanes stopped running.
enum class Stop : uint8_t {
  kNone,
  kYield,    ///< must wait until Context::now, then goes on
  kSwitch,   ///< the groups of the warp changed: choose again which one runs
  kBlocked,  ///< the group waits for a barrier, for other lanes, or is parked
  kFault,    ///< the finding is recorded; the kernel is dead
};

/// What a memory operation touched, for the timing model. Filled by memory operations in timed
/// mode only.
struct MemoryAccess {
  enum class Kind : uint8_t { kNone, kLoad, kStore, kAtomic, kReduction };
  enum class Target : uint8_t { kShared, kLocal, kDevice, kPinned, kMulticast, kParam };
  static constexpr uint16_t kNoDevice = 0xffff;
  Kind kind = Kind::kNone;
  Target target = Target::kDevice;
  bool strong = false;
  uint16_t device = 0;     ///< that holds the memory
  uint32_t sectors = 0;    ///< distinct 32-byte sectors; shared: of other blocks' memory
  uint32_t bytes = 0;      ///< requested by the lanes
  uint32_t conflicts = 0;  ///< shared: passes over the banks
  uint64_t address = 0;    ///< lowest
  uint64_t end = 0;        ///< one past the highest
};

/// The state that handlers work on: one group of lanes of one warp. The executor loads it when it
/// switches groups.
struct Context {
  Meta* meta = nullptr;            ///< slots of the current frame
  std::byte* vectors = nullptr;    ///< vector storage of the current frame, 64-byte aligned
  uint32_t* predicates = nullptr;  ///< one bit per lane
  uint32_t mask = 0;               ///< lanes that execute this operation
  /// No live lane outside `mask` can see this frame's registers: results may overwrite all lanes.
  bool full = false;
  bool timed = false;
  Stop stop = Stop::kNone;

  uint32_t group_mask = 0;  ///< lanes of the group, before the guard
  Time now = 0;             ///< virtual time of this group
  const FunctionCode* code = nullptr;
  Frame* frame = nullptr;
  Group* group = nullptr;
  Warp* warp = nullptr;
  Block* block = nullptr;
  KernelRun* run = nullptr;
  EngineState* engine = nullptr;
  /// Set while an iteration of a possible wait loop is recorded: every load and atomic reports
  /// what it read to it.
  SpinRecorder* recorder = nullptr;
  AddressSpace* memory = nullptr;
  const WatchFilter* watch = nullptr;
  AccessSite* sites = nullptr;  ///< of the run; indexed by MicroOp::target
  uint64_t shared_base = 0;     ///< generic address and size of the block's shared memory
  uint64_t shared_bytes = 0;
  uint64_t local_base = 0;        ///< generic address of lane 0's local memory; lane i's is
  uint64_t local_lane_bytes = 0;  ///< local_base + i * local_lane_bytes, of that many bytes
  MemoryAccess access;
};

/// Whether lanes outside `mask` are free to be overwritten, given the lanes that ended.
inline bool covers(uint32_t mask, uint32_t dead) { return (mask | dead) == kAllLanes; }

}  // namespace cb::sim
