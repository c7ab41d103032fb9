#pragma once

// Running CUDA programs on the simulator without trusted ranks: for tests and for development.

#include <cstdint>
#include <string>
#include <vector>

#include "simulator/client/rank_client.h"

namespace cb::sim {

struct ExecOptions {
  DaemonOptions daemon;  ///< world_size copies of the program are started
  std::string library_folder;
  std::vector<std::string> command;
  uint64_t virtual_limit_ps = 0;  ///< 0: none
  uint64_t delay_seed = 0;        ///< not 0: delays what hosts send; see Server::delay_hosts
  std::string report_path;        ///< where the report (report.h) goes; empty: nowhere
};

/// Runs the program to its end; findings and deadlocks are printed to stderr. Returns the first
/// exit code that is not 0: 125 for a deadlock, 124 for a time limit, 128 + n for a signal.
int execute(const ExecOptions& options);

}  // namespace cb::sim
