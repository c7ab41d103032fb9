#pragma once

// Running kernels: a launch has blocks, a block has warps, a warp has groups of lanes that are at
// the same place. A group owns nothing but its place; registers belong to frames, which lanes of
// several groups may share after they diverged.

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simulator/exec/code.h"
#include "simulator/exec/context.h"
#include "simulator/exec/copy_groups.h"
#include "simulator/exec/frame_pool.h"

namespace cb::sim {

/// For each lane, the offset in its local memory above which alloca took memory.
using LaneStack = std::array<uint32_t, kLanes>;

/// Registers of one call of a function, for the lanes that made it.
struct Frame {
  const FunctionCode* code = nullptr;
  Frame* caller = nullptr;
  uint32_t mask = 0;          ///< lanes that entered
  uint32_t return_to = 0;     ///< operation in the caller after the call
  uint32_t call_site = 0;     ///< in the caller's code
  uint32_t local_offset = 0;  ///< of the frame, in each lane's local memory
  Meta* meta = nullptr;
  std::byte* vectors = nullptr;
  uint32_t* predicates = nullptr;
  Time* ready = nullptr;  ///< [num_slots]: when a load fills the slot; timed mode
  FramePool::Memory storage;
  std::unique_ptr<LaneStack> stack;  ///< as it was when the function was entered
};

/// A place that a parked group waits on.
struct Watch {
  uint64_t address = 0;
  uint32_t bytes = 0;
  bool is_mbarrier = false;
};

enum class GroupState : uint8_t {
  kReady,      ///< runs when its warp does, not before `now`
  kBarrier,    ///< arrived at a barrier of its block
  kCluster,    ///< waits at the barrier of its cluster
  kGrids,      ///< waits for the kernels that its own depends on
  kExchange,   ///< waits for other lanes of its warp at a warp-wide operation
  kRegisters,  ///< waits until other warps of its block give up registers
  kParked,     ///< waits for a write to one of `watches`, or for `deadline`
};

/// Lanes of a warp that execute together.
struct Group {
  Frame* frame = nullptr;
  uint32_t pc = 0;  ///< index of the next operation
  uint32_t mask = 0;
  uint32_t rounds = 0;  ///< back edges taken / 64: who took fewest runs first
  uint32_t back_edges = 0;
  GroupState state = GroupState::kReady;
  Time now = 0;
  Time issue_clock = 0;  ///< of an ordered operation that was put off: see Engine
  bool ordered_pending = false;
  bool resumed = false;        ///< what the operation at pc waited for has happened
  uint32_t barrier = 0;        ///< kBarrier: its number
  uint32_t exchange_mask = 0;  ///< kExchange: the member mask
  // Wait loops.
  uint32_t spin_pc = ~0u;   ///< back edge that was taken last
  uint32_t spin_count = 0;  ///< times in a row
  std::unique_ptr<SpinRecorder> recorder;
  std::vector<Watch> watches;  ///< kParked
  Time deadline = 0;           ///< kParked: 0 for none
  Time deadline_step = 0;      ///< doubles with every wake-up in vain
  uint64_t park_id = 0;
  bool watches_pinned = false;    ///< kParked: host processes may write what it waits for
  std::vector<uint64_t> carried;  ///< what the recorded iteration started with
};

/// wgmma of one warp: when what it has issued is done.
struct TensorGroups {
  static constexpr unsigned kMostPending = 7;  ///< that wgmma.wait_group may name
  Time open = 0;                               ///< of the group that is not committed yet
  Time committed[kMostPending + 1] = {};       ///< the latest first; each includes those before it
};

struct Warp {
  Block* block = nullptr;
  uint32_t index = 0;       ///< in the block
  uint32_t slot = 0;        ///< on the SM, for the scheduler
  uint32_t live = 0;        ///< lanes that exist and have not exited
  uint64_t local_base = 0;  ///< generic address of lane 0's local memory
  uint64_t local_lane_bytes = 0;
  uint32_t registers = 0;  ///< per thread: what it was launched with, until setmaxnreg
  std::vector<std::unique_ptr<Group>> groups;
  std::vector<std::unique_ptr<Frame>> frames;
  std::unique_ptr<LaneStack> stack;    ///< nullptr: nothing was taken yet
  Time stores_done = 0;                ///< when all stores so far are visible
  std::unique_ptr<WarpCopies> copies;  ///< nullptr: none was started yet
  TensorGroups tensor;
  Time queued_at = kNever;  ///< when the event queue will run it; kNever: not queued
  uint64_t queue_ticket = 0;
  uint32_t cluster_arrived =
      0;  ///< lanes that arrived in the present phase of the cluster's barrier
  uint32_t cluster_passed = 0;  ///< lanes that did in a phase that is over, and did not wait yet
};

struct BlockBarrier {
  bool is_open = false;   ///< somebody arrived
  uint32_t expected = 0;  ///< threads, 0: all that live
  uint32_t arrived = 0;
  uint32_t arrived_in_warps = 0;  ///< the same, a complete warp counting as 32
  Time last_arrival = 0;
  std::array<uint32_t, 3> reduction = {};  ///< barrier.red: and, or, popc of the predicates so far
};

/// A store that was issued but is not visible yet.
struct PendingStore {
  uint64_t address = 0;
  uint64_t end = 0;
  Time visible = 0;
};

/// barrier.cluster: threads that exited are not waited for.
struct ClusterBarrier {
  uint32_t live = 0;     ///< threads that did not exit
  uint32_t arrived = 0;  ///< those of them that arrived in the present phase
  Time last_arrival = 0;
  Time opened = 0;  ///< when the phase before was over
};

struct Block;

/// Blocks that are resident together and may touch each other's shared memory.
struct Cluster {
  std::vector<Block*> blocks;  ///< by rank in the cluster; nullptr: ended
  /// Generic addresses of their shared memory, which stays until the last of them has ended.
  std::vector<uint64_t> shared_bases;
  uint64_t shared_bytes = 0;  ///< of each
  uint32_t live_blocks = 0;
  ClusterBarrier barrier;
};

struct Block {
  KernelRun* run = nullptr;
  Cluster* cluster = nullptr;  ///< nullptr: the block is a cluster of its own
  uint32_t cluster_rank = 0;
  ClusterBarrier own_barrier;  ///< of a block that is a cluster of its own
  uint32_t index[3] = {0, 0, 0};
  uint64_t linear = 0;
  uint32_t sm = 0;
  uint64_t shared_base = 0;  ///< generic address
  uint64_t shared_bytes = 0;
  std::vector<Warp*> warps;  ///< owned by the engine
  std::array<BlockBarrier, 16> barriers = {};
  std::array<std::array<uint32_t, 3>, 16> barrier_results = {};  ///< of the completed phase
  uint32_t live_warps = 0;
  uint64_t spare_registers = 0;  ///< per thread, of all warps: given up and not taken
  bool launched_dependents = false;
  Time stores_done = 0;  ///< of all warps, as of their last barrier
  std::vector<PendingStore> pending;
  uint32_t copies_in_flight = 0;  ///< asynchronous copies that read or write its shared memory
};

/// Where an operation may access memory without asking again.
struct AccessSite {
  uint64_t lo = 1, hi = 0;
  uint32_t epoch = 0;
  uint16_t device = MemoryAccess::kNoDevice;
  MemoryAccess::Target target = MemoryAccess::Target::kDevice;
  bool writable = false;
};

}  // namespace cb::sim
