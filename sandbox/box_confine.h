#pragma once

#include <linux/filter.h>

#include <cstddef>
#include <cstdint>

#include "sandbox/box_protocol.h"

namespace cb::box {

/// Enters the network and IPC namespaces of the job. Returns 0, or -1 with errno.
int join_job();

/// Replaces /tmp, /dev/shm and /proc by mounts that bubblewrap cannot make: capped inodes, nothing
/// of the machine in /proc. Returns the MissingLayer bits of what the kernel refused.
uint32_t tighten_mounts(const Plan& plan);

/// Gives the files that were copied into the jail one fixed time: compilers write it into what they
/// make, and the same sources must give the same bytes. Returns 0, or -1 with errno when the root
/// could not be made read-only again.
int fix_file_times();

/// Forbids new user namespaces below this one and gives up every capability except the one with
/// which boxinit watches its processes. Returns 0, or -1 with errno.
int drop_capabilities();
/// Gives up the rest, for the payload's process. Returns 0, or -1 with errno.
int drop_all_capabilities();

/// Applies the plan's rlimits to this process. Returns 0, or -1 with errno.
int apply_limits(const Plan& plan);

/// The landlock ABI of this kernel, 0 without landlock.
uint32_t landlock_abi();
/// Restricts this process to reading and executing what the jail has, and to writing to /tmp and
/// /dev/shm; with `cut_channels` also to no TCP, and to signals and abstract sockets of its own.
/// Returns 0, or -1 with errno.
int apply_landlock(uint32_t abi, bool cut_channels);

/// Installs the filter; returns its listener descriptor (close-on-exec), or -1 with errno.
int apply_filter(const sock_filter* instructions, size_t count);

}  // namespace cb::box
