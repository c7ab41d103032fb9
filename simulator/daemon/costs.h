#pragma once

#include <algorithm>

#include "simulator/exec/micro_op.h"
#include "simulator/timing/profile.h"

namespace cb::sim {

/// What calls cost the thread that makes them, and what work costs in its stream, in ps. Nothing is
/// free: a loop of calls must let virtual time go on.
struct Costs {
  explicit Costs(const Profile& profile);

  Time call, query, sync, stream_op, event;
  Time launch_enqueue, launch, launch_gap, programmatic_launch, cooperative_extra;
  Time copy_enqueue, copy_start;
  Time malloc, free, host_alloc, module_load, ipc_open;
  Time bootstrap, relax;
  /// Of each node of a graph that is launched, for the host: since CUDA 12.6 about a nanosecond
  /// (developer.nvidia.com, "Constant Time Launch for Straight-Line CUDA Graphs").
  Time graph_node = 1'000;
  /// From a host function's turn in its stream to its start on the driver's thread: an interrupt
  /// and a thread that wakes. Estimate; nothing published says it.
  Time host_function = 8'000'000;
  /// Of one stream memory operation, besides the way to the word: a semaphore operation of the
  /// device's front end. Estimate; nothing published says it.
  Time stream_memory_op = 500'000;
  /// Of each 2 MiB of managed memory that move, besides the copy: unmapping here, mapping there.
  /// Estimate; nothing published says it.
  Time page_migration = 10'000'000;
  Time clock_read = 20'000;  ///< of clock_gettime through the vDSO
  /// How far polls that find nothing new may be apart in the end; their cost doubles up to it.
  Time longest_query = 10'000'000;
  Time longest_relax = 1'000'000;
};

inline Costs::Costs(const Profile& profile) {
  auto ps = [](double ns) { return std::max<Time>(1000, static_cast<Time>(ns * 1000 + 0.5)); };
  call = ps(profile.call_ns);
  query = ps(profile.query_ns);
  sync = ps(profile.sync_ns);
  stream_op = ps(profile.stream_op_ns);
  event = ps(profile.event_ns);
  launch_enqueue = ps(profile.launch_enqueue_ns);
  launch = ps(profile.launch_ns);
  launch_gap = ps(profile.launch_gap_ns);
  programmatic_launch = ps(profile.programmatic_launch_ns);
  cooperative_extra = ps(profile.cooperative_extra_ns);
  copy_enqueue = ps(profile.copy_enqueue_ns);
  copy_start = ps(profile.copy_start_ns);
  malloc = ps(profile.malloc_ns);
  free = ps(profile.free_ns);
  host_alloc = ps(profile.host_alloc_ns);
  module_load = ps(profile.module_load_ns);
  ipc_open = ps(profile.ipc_open_ns);
  bootstrap = ps(profile.bootstrap_ns);
  relax = ps(profile.relax_ns);
}

}  // namespace cb::sim
