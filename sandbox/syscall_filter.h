#pragma once

#include <linux/filter.h>

#include <cstdint>
#include <string>
#include <vector>

#include "sandbox/jail.h"

namespace cb {

/// The system-call filter of a jail: an allow-list. What is not on it fails with ENOSYS, as on an
/// older kernel; a few calls that only an attack makes are reported to boxinit, which ends the jail
/// without ever answering. Built once for each profile and scope. Throws Error(kSystem).
const std::vector<sock_filter>& syscall_filter(JailProfile profile, JailScope scope);

/// "ptrace", "foreign architecture", or "system call 999".
std::string syscall_name(int number, uint32_t architecture);

}  // namespace cb
