#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>

#include "base/fd.h"

namespace cb {

/// Where our own cgroup lies in each hierarchy that a jail uses. Empty: not mounted.
struct CgroupLayout {
  int version = 0;  ///< 1 or 2; 0 when there is neither
  std::string memory_folder;
  std::string pids_folder;
  std::string cpu_folder;
};

/// Reads /proc/self/cgroup and /proc/self/mountinfo, given as text.
CgroupLayout locate_cgroups(const std::string& self_cgroup, const std::string& mountinfo);

/// A cgroup for one jail below our own, removed when destroyed. Where the hierarchy is absent or
/// not ours to write, it has no effect and `missing` says so: jails then rely on rlimits and on
/// boxinit's watchdog.
class Cgroup {
 public:
  Cgroup() = default;
  /// Makes the cgroups that this machine allows and sets their limits.
  static Cgroup create(uint64_t memory_bytes, unsigned processes);

  Cgroup(Cgroup&& other) noexcept { swap(other); }
  Cgroup& operator=(Cgroup&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Cgroup();

  /// Moves a process in. Throws Error(kSystem).
  void add(pid_t pid) const;

  /// Read-only counters for boxinit, or no descriptor: a file with "oom_kill N", one with
  /// "max N" refused forks, one with the processor time used.
  UniqueFd oom_file() const;
  UniqueFd pids_file() const;
  UniqueFd cpu_file() const;

  /// Whether the kernel has killed a process here for lack of memory.
  bool out_of_memory() const;
  uint64_t peak_memory_bytes() const;

  /// "no memory cgroup (why)"; empty when memory and processes are both capped.
  const std::string& missing() const { return missing_; }

 private:
  void swap(Cgroup& other) noexcept;

  int version_ = 0;
  std::string memory_;
  std::string pids_;
  std::string cpu_;
  std::string missing_;
};

}  // namespace cb
