#pragma once

#include <string>

#include "base/fd.h"
#include "harness/job.h"
#include "sandbox/jail.h"

namespace cb::harness {

/// commbench-simd for one job, in a jail of its own. Rank 0 has it; it ends with this object.
class SimDaemon {
 public:
  /// Listens on `socket_path` and hands the socket over. Throws Error(kRefused, kSystem).
  SimDaemon(const Job& job, const std::string& socket_path, uint64_t memory_seed,
            uint64_t symmetric_bytes_max);
  ~SimDaemon();
  SimDaemon(const SimDaemon&) = delete;
  SimDaemon& operator=(const SimDaemon&) = delete;

  /// How it ended, in words, and what it printed; empty while it runs.
  std::string obituary();

 private:
  std::string socket_path_;
  UniqueFd listener_;
  JailedProcess jail_;
};

}  // namespace cb::harness
