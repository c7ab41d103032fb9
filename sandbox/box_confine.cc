#include "sandbox/box_confine.h"

#include <dirent.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "sandbox/jail.h"

namespace cb::box {
namespace {

bool write_text(const char* path, const char* text) {
  int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return false;
  bool written = ::write(fd, text, std::strlen(text)) > 0;
  ::close(fd);
  return written;
}

// Bound files and folders are other file systems, and keep their times.
void fix_times_below(const std::string& folder, dev_t device) {
  DIR* listing = ::opendir(folder.c_str());
  if (listing == nullptr) return;
  while (const dirent* entry = ::readdir(listing)) {
    std::string name = entry->d_name;
    std::string path = folder + "/" + name;
    struct stat info {};
    if (name == "." || name == ".." || ::lstat(path.c_str(), &info) != 0) continue;
    if (info.st_dev != device) continue;
    const timespec zero[2] = {};
    ::utimensat(AT_FDCWD, path.c_str(), zero, AT_SYMLINK_NOFOLLOW);
    if (S_ISDIR(info.st_mode)) fix_times_below(path, device);
  }
  ::closedir(listing);
}

bool mount_tmpfs(const char* path, uint64_t bytes) {
  char options[128];
  std::snprintf(options, sizeof options, "mode=1777,size=%llu,nr_inodes=%u",
                static_cast<unsigned long long>(bytes), kTmpInodes);
  return ::mount("tmpfs", path, "tmpfs", MS_NOSUID | MS_NODEV | MS_NOEXEC, options) == 0;
}

// Keeps those of `kept` that this process has.
int set_capabilities(uint64_t kept) {
  for (int cap = 0; cap < 64; ++cap) {
    // Fails for numbers beyond the last capability.
    ::prctl(PR_CAPBSET_DROP, cap, 0, 0, 0);
  }
  if (::prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) != 0) return -1;
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct data[2]{};
  if (::syscall(SYS_capget, &header, data) != 0) return -1;
  for (int word = 0; word < 2; ++word) {
    data[word].permitted &= static_cast<uint32_t>(kept >> (32 * word));
    data[word].effective = data[word].permitted;
    data[word].inheritable = 0;
  }
  return static_cast<int>(::syscall(SYS_capset, &header, data));
}

int set_limit(int resource, uint64_t soft, uint64_t hard) {
  // A cap above what we inherited cannot be raised without privilege, and need not be.
  rlimit inherited{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &inherited);
  hard = std::min<uint64_t>(hard, inherited.rlim_max);
  rlimit value{std::min(soft, hard), hard};
  return ::setrlimit(static_cast<__rlimit_resource>(resource), &value);
}

// From the kernel's documentation; Debian 12's header stops at ABI 2.
struct RulesetAttributes {
  uint64_t handled_access_fs;
  uint64_t handled_access_net;
  uint64_t scoped;
};
struct PathRule {
  uint64_t allowed_access;
  int32_t parent_fd;
} __attribute__((packed));

constexpr uint64_t kExecute = 1 << 0;
constexpr uint64_t kWriteFile = 1 << 1;
constexpr uint64_t kReadFile = 1 << 2;
constexpr uint64_t kReadDir = 1 << 3;
constexpr uint64_t kRemoveDir = 1 << 4;
constexpr uint64_t kRemoveFile = 1 << 5;
constexpr uint64_t kMakeDir = 1 << 7;
constexpr uint64_t kMakeReg = 1 << 8;
constexpr uint64_t kRefer = 1 << 13;
constexpr uint64_t kTruncate = 1 << 14;
constexpr uint64_t kAllNet = 0b11;
constexpr uint64_t kScopeAll = 0b11;

uint64_t file_rights_of(uint32_t abi) {
  uint64_t rights = (uint64_t{1} << 13) - 1;
  if (abi >= 2) rights |= kRefer;
  if (abi >= 3) rights |= kTruncate;
  // ABI 5 adds ioctl on devices, which GPU nodes need and the syscall filter bounds elsewhere.
  return rights;
}

bool allow_below(int ruleset, const char* path, uint64_t rights) {
  int fd = ::open(path, O_PATH | O_CLOEXEC);
  if (fd < 0) return true;  // Not part of this jail: nothing to allow.
  PathRule rule{rights, fd};
  long added =
      ::syscall(SYS_landlock_add_rule, ruleset, 1 /* LANDLOCK_RULE_PATH_BENEATH */, &rule, 0);
  ::close(fd);
  return added == 0;
}

}  // namespace

int join_job() {
  if (::setns(kNetNamespaceFd, CLONE_NEWNET) != 0) return -1;
  return ::setns(kIpcNamespaceFd, CLONE_NEWIPC);
}

uint32_t tighten_mounts(const Plan& plan) {
  uint32_t missing = 0;
  // Running is all that boxinit needs of its file; the payload needs nothing of it.
  ::umount2("/box/boxinit", MNT_DETACH);
  // Before /proc/sys disappears below.
  write_text("/proc/sys/user/max_user_namespaces", "0");
  if ((plan.without_layers & kInodeCaps) == 0) {
    // A job's /dev/shm belongs to all its jails.
    bool capped = mount_tmpfs("/tmp", plan.tmp_bytes) &&
                  (plan.joins_job != 0 || mount_tmpfs("/dev/shm", plan.shm_bytes));
    if (!capped) missing |= kNoInodeCaps;
  }
  if ((plan.without_layers & kProcHiding) == 0) {
    // CUDA's real driver reads /proc/driver and /proc/meminfo, so only rank scope loses them.
    const char* options =
        plan.job_scope != 0 ? "hidepid=invisible" : "hidepid=invisible,subset=pid";
    if (::mount("proc", "/proc", "proc", MS_REMOUNT | MS_NOSUID | MS_NODEV | MS_NOEXEC, options) !=
        0) {
      missing |= kNoProcHiding;
    }
  }
  return missing;
}

int fix_file_times() {
  constexpr unsigned long kFlags = MS_REMOUNT | MS_BIND | MS_NOSUID | MS_NODEV;
  struct stat root {};
  if (::stat("/", &root) != 0 || ::mount(nullptr, "/", nullptr, kFlags, nullptr) != 0) return 0;
  fix_times_below("/box", root.st_dev);
  return ::mount(nullptr, "/", nullptr, kFlags | MS_RDONLY, nullptr);
}

int drop_capabilities() { return set_capabilities(uint64_t{1} << CAP_SYS_PTRACE); }

int drop_all_capabilities() { return set_capabilities(0); }

int apply_limits(const Plan& plan) {
  if ((plan.without_layers & kResourceLimits) != 0) return 0;
  constexpr uint64_t kMiB = 1 << 20;
  struct Limit {
    int resource;
    uint64_t soft, hard;
    bool set;
  };
  const Limit limits[] = {
      // Soft below hard: SIGXCPU names the reason, SIGKILL follows a second later.
      {RLIMIT_CPU, plan.cpu_s, plan.cpu_s + 1, plan.cpu_s != 0},
      {RLIMIT_DATA, plan.data_bytes, plan.data_bytes, plan.data_bytes != 0},
      {RLIMIT_FSIZE, plan.file_bytes, plan.file_bytes, plan.file_bytes != 0},
      {RLIMIT_NOFILE, plan.open_files, plan.open_files, true},
      // Counts boxinit as well; the watchdog ends the jail at `processes` itself. The jails of a
      // job are counted together, so there the watchdog is alone.
      {RLIMIT_NPROC, plan.processes + 2, plan.processes + 2, plan.joins_job == 0},
      {RLIMIT_STACK, 8 * kMiB, 64 * kMiB, true},
      // NVIDIA's driver pins what it likes.
      {RLIMIT_MEMLOCK, 8 * kMiB, 8 * kMiB, plan.job_scope == 0},
      {RLIMIT_CORE, 0, 0, true},
      {RLIMIT_MSGQUEUE, 0, 0, true},
      {RLIMIT_SIGPENDING, 1024, 1024, true},
      {RLIMIT_RTPRIO, 0, 0, true},
      {RLIMIT_NICE, 0, 0, true},
  };
  for (const Limit& limit : limits) {
    if (limit.set && set_limit(limit.resource, limit.soft, limit.hard) != 0) return -1;
  }
  return 0;
}

uint32_t landlock_abi() {
  long abi = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, 1 /* version query */);
  return abi > 0 ? static_cast<uint32_t>(abi) : 0;
}

int apply_landlock(uint32_t abi, bool cut_channels) {
  RulesetAttributes attributes{file_rights_of(abi), 0, 0};
  size_t attribute_bytes = sizeof(uint64_t);
  if (cut_channels && abi >= 4) {
    attributes.handled_access_net = kAllNet;
    attribute_bytes = 2 * sizeof(uint64_t);
  }
  if (cut_channels && abi >= 6) {
    attributes.scoped = kScopeAll;
    attribute_bytes = 3 * sizeof(uint64_t);
  }
  int ruleset =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &attributes, attribute_bytes, 0));
  if (ruleset < 0) return -1;
  uint64_t handled = attributes.handled_access_fs;
  uint64_t read = (kExecute | kReadFile | kReadDir) & handled;
  uint64_t change =
      (kWriteFile | kRemoveDir | kRemoveFile | kMakeDir | kMakeReg | kRefer | kTruncate) & handled;
  // CUDA names its threads through /proc/self/task/*/comm.
  bool allowed = allow_below(ruleset, "/", read) && allow_below(ruleset, "/tmp", read | change) &&
                 allow_below(ruleset, "/dev/shm", read | change) &&
                 allow_below(ruleset, "/dev", (read | kWriteFile) & ~kExecute) &&
                 allow_below(ruleset, "/proc", read | (kWriteFile & handled));
  if (!allowed || ::syscall(SYS_landlock_restrict_self, ruleset, 0) != 0) return -1;
  ::close(ruleset);
  return 0;
}

int apply_filter(const sock_filter* instructions, size_t count) {
  sock_fprog program{static_cast<unsigned short>(count), const_cast<sock_filter*>(instructions)};
  return static_cast<int>(
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_NEW_LISTENER, &program));
}

}  // namespace cb::box
