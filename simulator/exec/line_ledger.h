#pragma once

// Where a kernel's time goes: for each operation, the virtual time that groups of lanes spent at
// it, by what they waited for, and the bytes that it asked for. The time of all operations together
// is the time of all groups from their start to their end. Timed mode only; the engine has one only
// while somebody asked for it.

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <unordered_map>
#include <vector>

#include "base/json.h"
#include "simulator/exec/code.h"
#include "simulator/exec/context.h"
#include "simulator/exec/engine.h"

namespace cb::sim {

/// What a group of lanes spent time on.
enum class Stall : uint8_t {
  kIssue,         ///< executing: latency of arithmetic and issue slots
  kMemoryLocal,   ///< loads, atomics and full queues of memory of the own device, shared included
  kMemoryRemote,  ///< the same for other devices and the host
  kBarrier,       ///< barriers of blocks and clusters, and other lanes of the warp
  kSpin,          ///< parked in a loop that waits for memory to change
  kMbarrier,      ///< parked in a loop that waits for an mbarrier's phase
  kCopyEngine,    ///< asynchronous copies: starting them and waiting for their groups
  kFence,         ///< fences and releases: earlier stores must be visible
  kTensor,        ///< matrix instructions
  kLaunch,        ///< griddepcontrol.wait
};
inline constexpr size_t kNumStalls = 10;
/// "memory_remote".
const char* to_string(Stall stall);

struct OpCost {
  std::array<Time, kNumStalls> time = {};
  uint64_t instructions = 0;  ///< executed by a group
  uint64_t lanes = 0;         ///< the same, counted for each lane
  uint64_t device_bytes = 0;  ///< of the own device's memory: L1, L2 or HBM; whole sectors
  uint64_t host_bytes = 0;
  uint64_t shared_bytes = 0;
};

/// The costs of one kernel, all launches and ranks together.
struct KernelCosts {
  std::shared_ptr<const Program> program;
  std::string name;
  uint64_t launches = 0;
  std::vector<std::vector<OpCost>> functions;  ///< as in Program::functions, by operation
  std::vector<std::vector<Stall>> own;         ///< what time within the operation itself counts as
  /// Bytes that crossed NVLink: function, operation, from device, to device.
  std::map<std::tuple<uint32_t, uint32_t, int, int>, uint64_t> link_bytes;
  std::unordered_map<const FunctionCode*, uint32_t> number;  ///< for look-up only
};

class LineLedger {
 public:
  /// The costs that the launch is counted in.
  KernelCosts* open(const KernelLaunch& launch);

  /// What is known about a group between its turns.
  struct GroupClock {
    Time until = 0;  ///< its time up to then is counted
    Stall waits_for = Stall::kIssue;
  };
  GroupClock& clock_of(const Group& group);
  void forget(const Group& group) { clocks_.erase(&group); }

  /// What a register of a frame waits for when it is not ready.
  void set_source(const Frame& frame, uint16_t slot, Stall stall);
  Stall source_of(const Frame& frame, uint16_t slot) const;

  /// Counts an access of `bytes` by `op`.
  static void add_bytes(KernelCosts& costs, const FunctionCode& code, uint32_t pc, int device,
                        const MemoryAccess& access, uint64_t bytes);

  /// {"time_ps": n, "kernels": [{"name", "launches", "time_ps", "lines": [{"file", "line",
  ///   "ptx_line", "time_ps", "stalls": {stall: ps}, "instructions", "lane_instructions",
  ///   "bytes": {"device", "host", "shared", "links": [{"from", "to", "bytes"}]}}]}]}
  /// Kernels in the order of their first launch; lines by falling time. "ptx_line" only where the
  /// source line is not known.
  Json to_json() const;

 private:
  std::vector<std::unique_ptr<KernelCosts>> kernels_;
  std::unordered_map<const Group*, GroupClock> clocks_;
  std::unordered_map<const Frame*, std::vector<Stall>> sources_;
};

}  // namespace cb::sim
