// Which system calls each kind of jailed program gets. Rank scope is the strict one: whatever names
// an object outside the jail's namespaces (file locks, leases, inotify watches on the shared
// read-only files, vsock and netlink sockets, the keyring) could carry bytes from rank to rank.
#include "sandbox/syscall_filter.h"

#include <asm/ioctls.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <linux/audit.h>
#include <seccomp.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>

#include "base/error.h"
#include "base/fd.h"

namespace cb {
namespace {

constexpr const char* kFiles[] = {
    "read",
    "write",
    "readv",
    "writev",
    "pread64",
    "pwrite64",
    "preadv",
    "pwritev",
    "open",
    "openat",
    "openat2",
    "close",
    "close_range",
    "creat",
    "stat",
    "fstat",
    "lstat",
    "newfstatat",
    "statx",
    "statfs",
    "fstatfs",
    "lseek",
    "access",
    "faccessat",
    "faccessat2",
    "readlink",
    "readlinkat",
    "getdents",
    "getdents64",
    "getcwd",
    "chdir",
    "fchdir",
    "rename",
    "renameat",
    "renameat2",
    "mkdir",
    "mkdirat",
    "rmdir",
    "unlink",
    "unlinkat",
    "truncate",
    "ftruncate",
    "fallocate",
    "fsync",
    "fdatasync",
    "chmod",
    "fchmod",
    "fchmodat",
    "umask",
    "utimensat",
    "dup",
    "dup2",
    "dup3",
    "pipe",
    "pipe2",
    "poll",
    "ppoll",
    "select",
    "pselect6",
    "epoll_create",
    "epoll_create1",
    "epoll_ctl",
    "epoll_wait",
    "epoll_pwait",
    "epoll_pwait2",
    "eventfd",
    "eventfd2",
    "timerfd_create",
    "timerfd_settime",
    "timerfd_gettime",
    "signalfd4",
    "memfd_create",
    "sendfile",
    "copy_file_range",
    "splice",
    "tee",
    "fadvise64",
};

constexpr const char* kMemory[] = {
    "mmap",       "munmap",        "mprotect",      "mremap",        "madvise",
    "msync",      "mlock",         "mlock2",        "munlock",       "mlockall",
    "munlockall", "brk",           "membarrier",    "pkey_mprotect", "pkey_alloc",
    "pkey_free",  "get_mempolicy", "set_mempolicy", "mbind",
};

constexpr const char* kProcesses[] = {
    "execve",
    "execveat",
    "vfork",
    "fork",
    "exit",
    "exit_group",
    "wait4",
    "waitid",
    "kill",
    "tkill",
    "tgkill",
    "rt_sigaction",
    "rt_sigprocmask",
    "rt_sigreturn",
    "rt_sigsuspend",
    "rt_sigpending",
    "rt_sigtimedwait",
    "rt_sigqueueinfo",
    "rt_tgsigqueueinfo",
    "sigaltstack",
    "restart_syscall",
    "pause",
    "alarm",
    "setitimer",
    "getitimer",
    "nanosleep",
    "clock_nanosleep",
    "clock_gettime",
    "clock_getres",
    "gettimeofday",
    "time",
    "times",
    "timer_create",
    "timer_settime",
    "timer_gettime",
    "timer_getoverrun",
    "timer_delete",
    "futex",
    "futex_waitv",
    "set_robust_list",
    "get_robust_list",
    "set_tid_address",
    "rseq",
    "arch_prctl",
    "prctl",
    "getrandom",
    "uname",
    "sysinfo",
    "getrusage",
    "getrlimit",
    "setrlimit",
    "prlimit64",
    "getpid",
    "getppid",
    "gettid",
    "getuid",
    "geteuid",
    "getgid",
    "getegid",
    "getresuid",
    "getresgid",
    "getgroups",
    "getpgid",
    "getpgrp",
    "getsid",
    "setpgid",
    "setsid",
    "getpriority",
    "setpriority",
    "sched_yield",
    "sched_getaffinity",
    "sched_setaffinity",
    "sched_getparam",
    "sched_setparam",
    "sched_getscheduler",
    "sched_setscheduler",
    "sched_get_priority_max",
    "sched_get_priority_min",
    "sched_rr_get_interval",
    "getcpu",
    "capget",
    "pidfd_open",
    "pidfd_send_signal",
};

// On descriptors that the jail was given; without socket() none of them makes a new connection.
constexpr const char* kConnectedSockets[] = {
    "sendto",   "recvfrom",   "sendmsg",    "recvmsg",     "sendmmsg",    "recvmmsg",
    "shutdown", "setsockopt", "getsockopt", "getsockname", "getpeername",
};

constexpr const char* kJobScope[] = {
    "bind",
    "listen",
    "connect",
    "accept",
    "accept4",
    "flock",
    "shmget",
    "shmat",
    "shmdt",
    "shmctl",
    "mincore",
    "ioctl",
    "fcntl",
    "link",
    "linkat",
    "symlink",
    "symlinkat",
    "inotify_init",
    "inotify_init1",
    "inotify_add_watch",
    "inotify_rm_watch",
    "process_vm_readv",
    "process_vm_writev",
};

// File listings and copies ask for these and take "not supported" for an answer.
constexpr const char* kNoAttributes[] = {
    "getxattr", "lgetxattr", "fgetxattr", "listxattr",   "llistxattr",   "flistxattr",
    "setxattr", "lsetxattr", "fsetxattr", "removexattr", "lremovexattr", "fremovexattr",
};

// No program of ours, of NVIDIA's or of the C library makes these without meaning harm.
constexpr const char* kDenied[] = {
    "ptrace",          "bpf",        "mount",           "umount2",
    "pivot_root",      "setns",      "unshare",         "init_module",
    "finit_module",    "kexec_load", "perf_event_open", "userfaultfd",
    "keyctl",          "add_key",    "request_key",     "open_by_handle_at",
    "process_madvise", "chroot",     "reboot",          "swapon",
    "move_mount",      "open_tree",  "fsopen",          "fsmount",
    "mount_setattr",   "iopl",       "ioperm",
};

constexpr uint64_t kLow32 = 0xffffffff;  // The kernel ignores the upper half of an int argument.
constexpr uint64_t kNamespaceFlags = 0x7e020080;

class FilterBuilder {
 public:
  FilterBuilder() : context_(seccomp_init(SCMP_ACT_ERRNO(ENOSYS)), seccomp_release) {
    check(context_ == nullptr ? -ENOMEM : 0, "seccomp_init");
    check(seccomp_attr_set(context_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS),
          "foreign architectures");
    check(seccomp_attr_set(context_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2), "binary tree");
  }

  void allow(std::span<const char* const> names) {
    for (const char* name : names) rule(SCMP_ACT_ALLOW, name, {});
  }
  void deny_and_report(std::span<const char* const> names) {
    for (const char* name : names) rule(SCMP_ACT_NOTIFY, name, {});
  }
  void allow_if(const char* name, unsigned argument, uint64_t mask, uint64_t value) {
    rule(SCMP_ACT_ALLOW, name, scmp_arg_cmp{argument, SCMP_CMP_MASKED_EQ, mask, value});
  }
  void refuse(const char* name, int error) { rule(SCMP_ACT_ERRNO(error), name, {}); }
  void refuse_if(const char* name, int error, unsigned argument, uint64_t value) {
    rule(SCMP_ACT_ERRNO(error), name, scmp_arg_cmp{argument, SCMP_CMP_MASKED_EQ, kLow32, value});
  }

  std::vector<sock_filter> build() {
    UniqueFd file(::memfd_create("filter", MFD_CLOEXEC));
    if (!file) throw system_error("memfd_create");
    check(seccomp_export_bpf(context_.get(), file.get()), "export");
    off_t bytes = ::lseek(file.get(), 0, SEEK_END);
    std::vector<sock_filter> program(static_cast<size_t>(bytes) / sizeof(sock_filter));
    if (::pread(file.get(), program.data(), static_cast<size_t>(bytes), 0) != bytes) {
      throw system_error("read the system-call filter");
    }
    return program;
  }

 private:
  static void check(int result, const std::string& what) {
    if (result < 0) throw system_error("system-call filter: " + what, -result);
  }

  void rule(uint32_t action, const char* name, std::optional<scmp_arg_cmp> condition) {
    int number = seccomp_syscall_resolve_name(name);
    if (number == __NR_SCMP_ERROR) {
      throw Error(
          ErrorCode::kSystem,
          fmt::format("libseccomp does not know the system call {}; 2.5.4 or newer is needed",
                      name));
    }
    check(condition ? seccomp_rule_add_array(context_.get(), action, number, 1, &*condition)
                    : seccomp_rule_add_array(context_.get(), action, number, 0, nullptr),
          name);
  }

  std::unique_ptr<void, decltype(&seccomp_release)> context_;
};

void add_rank_rules(FilterBuilder& filter) {
  for (uint64_t request : {TCGETS, FIONREAD, FIONBIO, FIOCLEX, FIONCLEX, TIOCGWINSZ}) {
    filter.allow_if("ioctl", 1, kLow32, request);
  }
  for (int command : {F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_DUPFD_CLOEXEC, F_GETPIPE_SZ,
                      F_ADD_SEALS, F_GET_SEALS}) {
    filter.allow_if("fcntl", 1, kLow32, static_cast<uint64_t>(command));
  }
  for (int command : {F_GETLK, F_SETLK, F_SETLKW, F_OFD_GETLK, F_OFD_SETLK, F_OFD_SETLKW,
                      F_SETLEASE, F_GETLEASE, F_NOTIFY}) {
    filter.refuse_if("fcntl", ENOLCK, 1, static_cast<uint64_t>(command));
  }
  filter.refuse("flock", ENOLCK);
  filter.refuse("socket", EAFNOSUPPORT);
}

void add_job_rules(FilterBuilder& filter) {
  filter.allow(kJobScope);
  for (uint64_t family : {AF_UNIX, AF_INET, AF_INET6}) filter.allow_if("socket", 0, kLow32, family);
}

std::vector<sock_filter> build_filter(JailProfile profile, JailScope scope) {
  FilterBuilder filter;
  filter.allow(kFiles);
  filter.allow(kMemory);
  filter.allow(kProcesses);
  filter.deny_and_report(kDenied);
  for (const char* name : kNoAttributes) filter.refuse(name, EOPNOTSUPP);
  // clone3 hides its flags behind a pointer; ENOSYS makes the C library use clone.
  filter.allow_if("clone", 0, kNamespaceFlags, 0);
  filter.allow_if("socketpair", 0, kLow32, AF_UNIX);
  filter.allow(kConnectedSockets);
  if (scope == JailScope::kJob) {
    add_job_rules(filter);
  } else {
    add_rank_rules(filter);
  }
  if (profile == JailProfile::kDaemon && scope == JailScope::kRank) {
    constexpr const char* kServer[] = {"accept", "accept4"};
    filter.allow(kServer);
  }
  return filter.build();
}

}  // namespace

const std::vector<sock_filter>& syscall_filter(JailProfile profile, JailScope scope) {
  static std::mutex mutex;
  static std::map<std::pair<JailProfile, JailScope>, std::vector<sock_filter>> built;
  std::lock_guard lock(mutex);
  auto [entry, is_new] = built.try_emplace({profile, scope});
  if (is_new) entry->second = build_filter(profile, scope);
  return entry->second;
}

std::string syscall_name(int number, uint32_t architecture) {
  if (architecture != AUDIT_ARCH_X86_64) return "foreign architecture";
  std::unique_ptr<char, decltype(&std::free)> name(
      seccomp_syscall_resolve_num_arch(SCMP_ARCH_X86_64, number), std::free);
  return name ? name.get() : fmt::format("system call {}", number);
}

}  // namespace cb
