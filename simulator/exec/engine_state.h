#pragma once

// The engine's insides, shared by its source files: engine.cc (events), residency.cc (which blocks
// run where), warp_run.cc (the loop that executes operations), groups.cc, barrier.cc and
// cluster_barrier.cc (lanes, warps and blocks that wait for each other), dependencies.cc (kernels
// that overlap), parking.cc (wait loops), stores.cc (when stores become visible), copy_engine.cc
// (asynchronous copies).

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "simulator/exec/async_copy.h"
#include "simulator/exec/engine.h"
#include "simulator/exec/engine_port.h"
#include "simulator/exec/event_queue.h"
#include "simulator/exec/kernel_run.h"
#include "simulator/exec/line_ledger.h"
#include "simulator/exec/machine.h"

namespace cb::sim {

/// How far a warp may run ahead of the others where order does not matter. Without timing that is
/// everywhere, and a block that runs on for long finds its registers in the cache.
inline constexpr Time kSlack = 1'000'000;
inline constexpr Time kFunctionalSlack = 20'000'000;
/// Operations that a warp executes at most before others get their turn.
inline constexpr uint32_t kQuantum = 4096;
inline constexpr size_t kMaxFindings = 64;
inline constexpr size_t kMaxOutputBytes = size_t{1} << 20;

struct SmState {
  uint32_t blocks = 0;
  uint32_t warps = 0;
  uint64_t registers = 0;
  uint64_t shared_bytes = 0;
  uint32_t next_slot = 0;
};

struct DeviceState {
  std::vector<SmState> sms;
  std::vector<KernelRun*> waiting;  ///< with blocks that did not start yet, most urgent first
};

struct DelayedStore {
  LaneWrites writes;
  Block* block = nullptr;  ///< whose pending list has it; nullptr when the block has ended
  uint64_t lo = 0, hi = 0;
};

/// The instruction that started a copy, for findings.
struct CopyOrigin {
  const FunctionCode* code = nullptr;
  uint32_t pc = 0;
  uint32_t thread = 0;  ///< linear, in the block
  uint32_t block[3] = {0, 0, 0};
};

/// A copy that was started but is not complete. An entry that is not active does nothing.
struct CopyInFlight {
  bool is_active = false;
  uint64_t run = 0;  ///< its number
  CopyOrigin origin;
  CopyGroups::Times times;
  AsyncCopy copy;
  uint64_t bytes_held = 0;  ///< counted in EngineState::copy_bytes
};

/// Who waits for a line of 64 bytes.
struct LineWatch {
  Warp* warp = nullptr;
  Group* group = nullptr;
  uint64_t park_id = 0;
};

/// Memory that somebody outside the engine watches.
struct OuterWatch {
  uint64_t address = 0;  ///< at home, see AddressSpace::home_of
  uint32_t bytes = 0;
  bool is_pinned = false;  ///< host processes may write it
  std::function<void()> on_write;
};

struct RankState {
  EngineStats stats;
  uint32_t pace = 1;
  std::string output;
};

struct EngineState {
  EngineState(AddressSpace& memory_, const Profile& profile_, const EngineOptions& options_);

  AddressSpace& memory;
  const Profile profile;
  const EngineOptions options;
  Resources resources;
  ScratchSpace scratch;

  FramePool frame_pool;  // outlives the warps
  EventQueue queue;
  std::deque<std::pair<Warp*, uint64_t>> hot;  ///< with their tickets; empty between events
  Time now = 0;
  Time limit = 0;  ///< of the present run()
  bool interrupted = false;
  Time cycle_ps = 0;
  Time slack = kSlack;
  Time hop_ps = 0;   ///< a store's way to a peer
  Time near_ps = 0;  ///< half of a load's way to memory of the own device

  std::vector<DeviceState> devices;
  std::map<uint64_t, std::unique_ptr<KernelRun>> runs;
  std::vector<std::unique_ptr<KernelRun>> ended_runs;  ///< freed when no event is being executed
  uint64_t next_run = 1;
  std::vector<Finding> findings;
  std::vector<RankState> ranks;

  std::deque<std::function<void()>> callbacks;
  std::vector<uint64_t> free_callbacks;
  std::deque<DelayedStore> stores;
  std::vector<uint64_t> free_stores;
  std::deque<CopyInFlight> copies;
  std::vector<uint64_t> free_copies;
  uint64_t copy_bytes = 0;                   ///< that copies on their way need here
  std::vector<std::unique_ptr<Warp>> warps;  ///< all that ever were; events point at them
  std::vector<Warp*> free_warps;
  uint64_t next_ticket = 1;

  WatchFilter filter;
  std::map<uint64_t, std::vector<LineWatch>> watches;  ///< by address / 64
  std::map<uint64_t, OuterWatch> outer_watches;        ///< of Engine::watch
  uint64_t next_park = 1;
  uint64_t num_deadlines = 0;  ///< parked groups that wake by themselves
  uint64_t num_pinned = 0;     ///< parked groups and outer watches that wait for pinned memory

  // engine.cc
  void queue_warp(Warp& warp, Time time);
  /// Lets the warp run next, before all that is queued, unless that would be too far ahead.
  void run_soon(Warp& warp, Time time);
  void run_hot_warps();
  bool is_too_far(Time time) const {
    Time from = horizon();
    return from < kNever - slack && time > from + slack;
  }
  void queue_callback(Time time, std::function<void()> callback);
  void execute(const Event& event);
  /// Time up to which operations whose order matters may be executed.
  Time horizon() const { return std::min(limit, queue.next_time()); }

  // residency.cc
  void start_run(KernelRun& run);
  void dispatch(int device);
  bool has_room(KernelRun& run);
  uint64_t undefined_memory(uint64_t bytes);
  bool place_block(KernelRun& run);
  /// Starts all blocks of the next cluster, in the GPC that has most room.
  bool place_cluster(KernelRun& run);
  bool has_room_for(const KernelRun& run, const SmState& sm, uint32_t blocks) const;
  void occupy(const KernelRun& run, SmState& sm);
  SmState* emptiest(const KernelRun& run, std::span<SmState> sms) const;
  void start_block(KernelRun& run, uint64_t linear, uint32_t sm, Cluster* cluster = nullptr);
  void join_cluster(Block& block, Cluster& cluster);
  void free_shared(Block& block);
  void end_block(Block& block, Time end);
  void end_run(KernelRun& run);
  /// Drops all blocks of a run that failed or whose process is gone.
  void abandon(KernelRun& run);

  // frames.cc
  const FrameTemplate& frame_template(KernelRun& run, const FunctionCode& code);
  std::unique_ptr<Frame> make_frame(Warp& warp, const FunctionCode& code, uint32_t mask,
                                    uint32_t local_offset);

  // warp_run.cc
  void run_warp(Warp& warp);

  // groups.cc
  void load_group(Context& c, Warp& warp, Group& group);
  Group* choose_group(Warp& warp);
  Group& split(Context& c, uint32_t lanes, uint32_t pc);
  void merge_groups(Warp& warp);
  void drop_group(Warp& warp, Group& group);
  void drop_unused_frames(Warp& warp);
  void exit_lanes(Context& c, uint32_t lanes);
  void recheck_exchanges(Warp& warp);

  // barrier.cc
  void complete_barrier(Block& block, uint32_t number, Time time);
  void recheck_barriers(Block& block, Time time);

  // cluster_barrier.cc
  void complete_cluster_barrier(Block& block, Time time);
  void leave_cluster_barrier(Warp& warp, uint32_t lanes, Time time);

  // dependencies.cc
  void block_launches_dependents(Block& block, Time time);
  void dependencies_met(KernelRun& run);

  // parking.cc
  const MicroOp* take_back_edge(Context& c, const MicroOp* op, const MicroOp* target);
  void park(Context& c, bool has_deadline);
  void unpark(Warp& warp, Group& group, Time time);
  void wake_expired(Warp& warp);
  void queue_deadlines(Warp& warp);
  void forget_watches(Group& group);
  void written(uint64_t lo, uint64_t hi, Time time);
  void written_at_home(uint64_t lo, uint64_t hi, Time time);
  void host_may_have_written();
  uint64_t add_outer_watch(uint64_t address, uint32_t bytes, std::function<void()> on_write);
  void remove_outer_watch(uint64_t number);
  void call_outer_watches(uint64_t lo, uint64_t hi, Time time);

  // stores.cc
  Time reach_time(const Context& c, const MicroOp* op) const;
  std::optional<Time> pending_overlap(const Context& c, const MicroOp* op) const;
  void charge(Context& c, const MicroOp* op);
  void apply_store(uint64_t index);

  // copy_engine.cc
  /// Charges the resources: when the sources are read and the destinations written.
  CopyGroups::Times charge_copy(Context& c, const MicroOp* op, const AsyncCopy& copy);
  void send_copy(Context& c, const MicroOp* op, int lane, AsyncCopy copy, CopyGroups::Times times);
  void read_copy(uint64_t index);
  void finish_copy(uint64_t index);
  /// Wakes who waits for what the copy has written.
  void note_arrival(const AsyncCopy& copy);
  /// What is wrong with the update, if anything.
  std::optional<std::string> tell_barrier(const CopySignal& signal);
  void blame(const CopyInFlight& flight, KernelRun& run, Finding::Kind kind,
             const std::string& detail);
  /// False, with a finding, where copies still need the shared memory of a block that ends.
  bool copies_let_end(Block& block, Time end);
  /// Ends what copies would still do to a block's shared memory.
  void drop_copies(Block& block);

  // faults.cc
  CodePlace place_of(const KernelRun& run, const uint32_t* block, uint32_t thread,
                     const FunctionCode& code, uint32_t pc) const;
  CodePlace place_of(const Warp& warp, const Frame& frame, uint32_t pc, int lane) const;
  std::vector<Waiter> waiters(size_t limit) const;
  Waiter describe_waiter(const Warp& warp, const Group& group) const;
};

/// Fills file and line: of the innermost place that is not in the toolkit's headers.
void set_source(CodePlace& place, const ptx::Module& module, int32_t index);

/// Presets of special registers for the lanes of a warp.
void set_special(Frame& frame, const Preset& preset, const Warp& warp, uint32_t num_sms);

/// The comparison under which a parked group goes on waiting, for what it loads: "< 3"; empty when
/// its loop does not show it.
std::string awaited_value(const Group& group);

/// A NUL-terminated string that the kernel may read, at most 4 KiB of it; nullopt: it may not.
std::optional<std::string> device_string(Context& c, uint64_t address);

/// printf of device code; appends to `out`. `result` is what it returns: the number of arguments,
/// -1 without a format. nullptr after a fault.
const MicroOp* print_formatted(Context& c, const MicroOp* op, uint64_t format, uint64_t arguments,
                               int lane, std::string& out, int32_t& result);

}  // namespace cb::sim
