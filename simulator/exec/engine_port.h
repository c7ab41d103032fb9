#pragma once

// What handlers ask of the engine. Handlers know registers and memory; the engine knows time, other
// warps and who waits.

#include <array>
#include <cstdint>
#include <optional>
#include <string>

#include "simulator/check/finding.h"
#include "simulator/exec/context.h"
#include "simulator/exec/machine.h"
#include "simulator/timing/resources.h"

namespace cb::sim {

/// Ends the kernel with a finding about lane `lane` of the current operation; sets c.stop.
/// Returns nullptr, for handlers to return.
const MicroOp* fault(Context& c, const MicroOp* op, Finding::Kind kind, int lane,
                     const std::string& detail, uint64_t address = 0, uint32_t bytes = 0,
                     bool write = false);

/// The bytes that a store writes, lane by lane; lane i's `bytes` go to addresses[i].
struct LaneWrites {
  uint32_t mask = 0;
  uint32_t bytes = 0;  ///< at most 16
  std::array<uint64_t, kLanes> addresses;
  std::array<std::array<std::byte, 16>, kLanes> data;
};

/// A strong store, already checked: becomes visible in the order of virtual time. c.access is
/// filled.
void post_store(Context& c, const MicroOp* op, const LaneWrites& writes);

/// Memory [lo, hi) was just written by this operation: wakes groups that wait for it.
void wake_watchers(Context& c, uint64_t lo, uint64_t hi);
inline void note_write(Context& c, uint64_t lo, uint64_t hi) {
  if (c.watch->num_watches != 0) [[unlikely]]
    wake_watchers(c, lo, hi);
}

/// True when all `members` that live take part, so that the operation may execute now. Else the
/// group waits for the others and the handler returns nullptr: it is called again when all have
/// come together, with all their lanes.
bool gather_lanes(Context& c, const MicroOp* op, uint32_t members);

/// As gather_lanes for bar.warp.sync, whose lanes may be at different operations: true when they
/// have all arrived.
bool sync_lanes(Context& c, const MicroOp* op, uint32_t members);

/// A barrier of the block. `threads` 0: all of the block. kArrive does not wait. True: go on; then
/// `result` of a reduction is in c.block->barrier_results[number] (and, or, popc). False: return
/// nullptr; called again when the barrier completes.
enum class BarrierKind : uint8_t { kSync, kArrive, kReduce };
bool block_barrier(Context& c, const MicroOp* op, uint32_t number, uint32_t threads,
                   BarrierKind kind, uint32_t predicate_lanes = 0);

/// barrier.cluster. False after a fault, and where the lanes wait: then return nullptr; called
/// again when the phase in which they arrived is over.
bool arrive_at_cluster(Context& c, const MicroOp* op, bool release);
bool wait_for_cluster(Context& c, const MicroOp* op, bool acquire);

/// The kernels behind this one that may overlap with it need not wait for this block any more.
void launch_dependents(Context& c);
/// Whether all kernels before this one are over; false: return nullptr, called again when they are.
bool wait_for_grids(Context& c, const MicroOp* op);

enum class Scope : uint8_t { kBlock, kCluster, kDevice, kSystem };
/// A fence: waits for the stores before it, charges its cost, and makes the SM's L1 stale.
void fence(Context& c, Scope scope);

/// Charges the warp's tensor core for this operation: the first `num_results` registers of its
/// operand list arrive when the work is done. The work of wgmma joins the warp's open group
/// instead.
void charge_tensor(Context& c, const MicroOp* op, const Resources::TensorWork& work,
                   unsigned num_results);
/// wgmma.commit_group, and wgmma.wait_group for all but the `pending` last groups.
void commit_tensor_group(Context& c);
void wait_tensor_groups(Context& c, unsigned pending);
/// The warp's place in its warpgroup, 0 to 3; nullopt where the block has not all four warps.
std::optional<unsigned> rank_in_warpgroup(const Context& c);
/// Gives the warp another number of registers per thread. Fewer are there for other warps of the
/// block; for more than are spare the warp waits: false, return nullptr; called again then. Also
/// false after a fault, where the change has the wrong direction.
bool change_registers(Context& c, const MicroOp* op, bool more, uint32_t registers);

/// Lets the group sleep.
void sleep_ns(Context& c, uint64_t ns);

/// Cycles of the SM's clock, and nanoseconds, at the current time.
uint64_t clock_cycles(const Context& c);
uint64_t global_timer_ns(const Context& c);

/// What an iteration of a possible wait loop has read so far.
class SpinRecorder {
 public:
  static constexpr size_t kMaxReads = 256;

  /// A load or a failed atomic read `bytes` at `address`; call it after reading.
  void read(uint64_t address, uint32_t bytes);
  /// The same for an mbarrier that the iteration found in the phase that it waits for.
  void read_barrier(uint64_t address) {
    read(address, sizeof(uint64_t));
    if (!reads_.empty()) reads_.back().is_mbarrier = true;
  }
  /// The iteration changed something: it is no pure wait.
  void spoil() { spoiled_ = true; }
  /// The iteration looked at the time: it may end without a write.
  void see_clock() { uses_clock_ = true; }

  bool spoiled() const { return spoiled_; }
  bool uses_clock() const { return uses_clock_; }
  /// Whether all that was read is still in memory.
  bool unchanged() const;
  const std::vector<Watch>& reads() const { return reads_; }
  void clear();

 private:
  std::vector<Watch> reads_;
  std::vector<std::array<std::byte, 16>> values_;
  bool spoiled_ = false;
  bool uses_clock_ = false;
};

}  // namespace cb::sim
