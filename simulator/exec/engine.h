#pragma once

// Executes kernels in virtual time. The daemon starts kernels, schedules its own events among
// theirs, and lets time pass up to a limit; everything that happens does so at a virtual time that
// depends on nothing but the program.

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "simulator/check/finding.h"
#include "simulator/exec/code.h"
#include "simulator/exec/context.h"
#include "simulator/memory/address_space.h"
#include "simulator/timing/profile.h"
#include "simulator/timing/resources.h"

namespace cb::sim {

struct EngineState;
struct KernelLaunch;
class LineLedger;

/// Hears of what takes time. Blocks and waits are named by numbers that are used once.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  virtual void block_started(const KernelLaunch& launch, uint64_t run, uint64_t block, uint32_t sm,
                             Time time) = 0;
  virtual void block_ended(uint64_t run, uint64_t block, Time time) = 0;
  /// Lanes of one warp were parked: `waiter` says where, and for what.
  virtual void wait_started(uint64_t number, const Waiter& waiter, Time time) = 0;
  virtual void wait_ended(uint64_t number, Time time) = 0;
};

/// One launch, checked by the daemon: shapes within limits, parameters complete, blocks that fit.
struct KernelLaunch {
  std::shared_ptr<const Program> program;
  /// Generic address of each of the module's variables for this process and device.
  std::shared_ptr<const std::vector<uint64_t>> variables;
  int rank = 0;
  int device = 0;  ///< global number
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  uint32_t cluster[3] = {1, 1, 1};  ///< blocks; divides the grid, and fits a GPC
  bool explicit_cluster = false;    ///< the launch or the kernel names the cluster's shape
  uint32_t dynamic_shared_bytes = 0;
  uint32_t registers = 0;  ///< per thread, as ptxas reports: decides residency
  uint32_t static_shared_bytes = 0;
  bool cooperative = false;
  int32_t priority = 0;
  /// griddepcontrol.wait waits until dependencies_met() says that the kernels before it are over.
  bool has_dependencies = false;
  /// Called when every block has executed griddepcontrol.launch_dependents or ended.
  std::function<void(Time)> on_launch_dependents;
  std::vector<std::byte> parameters;
  Time start = 0;    ///< when its first block may start
  std::string name;  ///< demangled
};

struct EngineOptions {
  bool timed = true;  ///< false: one cycle per operation, no resources
  /// Counts what each operation costs; timed mode only. nullptr: nobody asked. Outlives the engine.
  LineLedger* ledger = nullptr;
  /// Told about blocks and waits. nullptr: nobody asked. Outlives the engine.
  EngineObserver* observer = nullptr;
};

/// What a rank's kernels did, for the record.
struct EngineStats {
  uint64_t warp_instructions = 0;
  uint64_t lane_instructions = 0;
  uint64_t kernels = 0;
  uint64_t blocks = 0;
  uint64_t parked = 0;
};

class Engine {
 public:
  Engine(AddressSpace& memory, const Profile& profile, const EngineOptions& options);
  ~Engine();

  /// Starts a kernel. `on_end` is called at the virtual time at which its last block ended and its
  /// stores are visible, or at which it failed (its finding is in findings()).
  using EndCallback = std::function<void(Time end, bool failed)>;
  uint64_t start(KernelLaunch launch, EndCallback on_end);

  /// What a kernel with has_dependencies waits for is over; nothing if the kernel is, too.
  void dependencies_met(uint64_t run);

  /// Calls `callback` at `time` (not earlier than now()). Events at the same time run in the order
  /// of scheduling.
  void at(Time time, std::function<void()> callback);

  Time now() const;
  /// Time of the next event; kNever when there is none.
  Time next_event() const;
  /// Runs events up to and including `limit`. Returns when the next one is later, after
  /// interrupt(), or every few thousand operations when `poll` returns true.
  void run(Time limit, const std::function<bool()>& poll = {});
  /// Makes run() return after the current event.
  void interrupt();

  /// Memory was written by somebody else (host, copy): wakes who waits for it.
  void written(uint64_t address, uint64_t bytes);

  /// Calls `on_write` whenever [address, address + bytes) may have been written, until unwatch().
  /// Returns its number, not 0.
  uint64_t watch(uint64_t address, uint32_t bytes, std::function<void()> on_write);
  void unwatch(uint64_t number);

  /// Pinned memory may have been written by a host process: wakes who waits for it and finds it
  /// changed. To be called whenever a host thread makes a request.
  void host_may_have_written();

  /// Ends all kernels of a rank's process without calling their callbacks.
  void stop_rank(int rank);

  /// From now on kernels of the rank's process take `pace` times as long: operations, and loads
  /// and stores on their way. Timed mode only.
  void set_pace(int rank, uint32_t pace);

  /// Groups that nothing but a write by a host can wake, for the deadlock report; at most `limit`,
  /// those of the lowest rank, block and warp first.
  std::vector<Waiter> waiters(size_t limit) const;
  size_t num_waiters() const;

  /// In order of virtual time. At most 64 are kept.
  const std::vector<Finding>& findings() const;
  /// What kernels of the rank printed since the last call; bounded (1 MiB, the rest is dropped as
  /// the printf buffer of hardware does).
  std::string take_output(int rank);
  size_t output_bytes(int rank) const;

  const EngineStats& stats(int rank) const;
  Resources& resources();

 private:
  std::unique_ptr<EngineState> state_;
};

}  // namespace cb::sim
