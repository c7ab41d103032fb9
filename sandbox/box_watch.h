#pragma once

#include <cstdint>

namespace cb::box {

/// What all processes of this PID namespace but boxinit hold at one moment.
struct Usage {
  uint64_t memory_bytes = 0;        ///< resident anonymous and shared memory
  uint64_t largest_data_bytes = 0;  ///< the most writable private memory one process has mapped
  unsigned tasks = 0;               ///< processes and threads
};

/// Reads /proc, whose owner may see every process here.
Usage measure_usage();

/// The number after `key` in a cgroup file, or the first number when `key` is null; 0 when the
/// file says nothing of the kind.
uint64_t read_counter(int fd, const char* key);

/// Whether /tmp or /dev/shm has no room left, in bytes or in inodes.
bool temporary_files_full();

}  // namespace cb::box
