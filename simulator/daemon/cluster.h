#pragma once

// All that the simulated cluster is made of: memory, devices, and one host process per rank.

#include <memory>
#include <string>
#include <vector>

#include "simulator/client/rank_client.h"
#include "simulator/daemon/bootstrap.h"
#include "simulator/daemon/costs.h"
#include "simulator/daemon/host_process.h"
#include "simulator/daemon/ipc.h"
#include "simulator/daemon/memory_pools.h"
#include "simulator/daemon/module_cache.h"
#include "simulator/daemon/timeline.h"
#include "simulator/daemon/virtual_memory.h"
#include "simulator/exec/engine.h"
#include "simulator/exec/line_ledger.h"
#include "simulator/memory/address_space.h"
#include "simulator/timing/profile.h"

namespace cb::sim {

class Job;

struct Cluster {
  /// Throws Error(kConfig) when the profile has not enough devices for the ranks.
  Cluster(const DaemonOptions& options_, const Profile& profile_);

  const DaemonOptions options;
  const Profile profile;
  const Costs costs;
  AddressSpace memory;
  std::unique_ptr<LineLedger> ledger;  ///< nullptr: nobody asked
  std::unique_ptr<Timeline> timeline;  ///< nullptr: nobody asked
  Engine engine;
  ModuleCache modules;
  IpcTokens ipc;
  VirtualMemory virtual_memory;
  MemoryPools pools;
  Bootstrap bootstrap;
  std::vector<std::unique_ptr<HostProcess>> processes;  ///< by rank; nullptr: not connected yet
  std::vector<std::unique_ptr<HostProcess>> retired;    ///< whose callbacks may still come
  std::vector<Finding> findings;                        ///< the daemon's own
  Time start = 0;                                       ///< of the present processes
  Job* job = nullptr;                                   ///< nullptr without trusted ranks

  int device_of_rank(int rank) const { return rank; }
  int node_of_rank(int rank) const { return profile.node_of_device(rank); }
  /// As HelloReply and the replies' DeviceInfo say it.
  DeviceInfo device_info(int global_device) const;

  /// Makes the rank's process with its first thread.
  HostProcess& new_process(int rank);

  /// Notes a finding of the daemon's own, and tells the job.
  void report(Finding finding);
  /// A kernel of the process died; the engine has the finding.
  void kernel_failed(const HostProcess& process);
  /// The process's context on `device` is broken from now on: what it had enqueued ends.
  void break_context(HostProcess& process, int device, int error);
  /// More memory is backed than the quota allows: the job cannot go on. `rank` -1: nobody's fault.
  void out_of_memory(int rank);
  /// The process is gone, or its job is over: its kernels and copies end.
  void end_process(HostProcess& process, HostProcess::State state);

  /// All findings in the order of virtual time.
  std::vector<Finding> all_findings() const;
};

}  // namespace cb::sim
