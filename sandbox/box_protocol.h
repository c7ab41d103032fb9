#pragma once

#include <array>
#include <cstdint>

/// What the supervisor and commbench-boxinit tell each other. The plan goes in through a memfd,
/// messages come back over a socketpair whose jail end never leaves boxinit. Both sides are built
/// from the same tree, so the structures carry no version.
namespace cb::box {

/// Descriptors with which boxinit starts. The three cgroup files are -1 in the plan when absent.
enum Fd : int {
  kControlFd = 3,
  kPlanFd = 4,
  kOutFd = 5,
  kErrFd = 6,
  kOomFd = 7,
  kPidsFd = 8,
  kCpuFd = 9,
  kUserNamespaceFd = 10,  ///< these three of the job, when the plan joins one
  kNetNamespaceFd = 11,
  kIpcNamespaceFd = 12,
  kFirstPayloadFd = 16,
};

/// Inside, the payload is always this user; outside it is the box user or the caller.
inline constexpr unsigned kInsideUid = 60000;
inline constexpr unsigned kTmpInodes = 8192;
inline constexpr unsigned kMaxPayloadFds = 64;

struct PayloadFd {
  int32_t from = -1;
  int32_t to = -1;
};

/// Followed in the memfd by `filter_instructions` struct sock_filter, then by `strings_bytes` of
/// NUL-terminated strings: argument_count, environment_count, then the working folder.
struct Plan {
  uint64_t memory_bytes = 0;
  uint64_t data_bytes = 0;  ///< RLIMIT_DATA; 0: none
  uint64_t cpu_s = 0;
  uint64_t file_bytes = 0;
  uint64_t tmp_bytes = 0;
  uint64_t shm_bytes = 0;
  uint64_t output_bytes = 0;
  uint32_t processes = 0;
  uint32_t open_files = 0;
  uint32_t without_layers = 0;  ///< JailLayer bits
  uint32_t job_scope = 0;
  uint32_t joins_job = 0;
  uint32_t has_oom_file = 0;
  uint32_t has_pids_file = 0;
  uint32_t has_cpu_file = 0;
  uint32_t argument_count = 0;
  uint32_t environment_count = 0;
  uint32_t filter_instructions = 0;
  uint32_t strings_bytes = 0;
  uint32_t fd_count = 0;
  std::array<PayloadFd, kMaxPayloadFds> fds{};
};

enum class MessageKind : uint32_t {
  kReady,    ///< boxinit is confined and waits for one byte, the permission to start
  kStarted,  ///< sent by the payload's process itself just before exec
  kFailed,   ///< setup broke: `step` and `error`
  kEnded,    ///< the payload ended or was ended; the last message
};

/// Where setup can break, for the message a person reads.
enum class Step : uint32_t {
  kNone,
  kPlan,
  kNamespaces,
  kMounts,
  kCapabilities,
  kFds,
  kLimits,
  kLandlock,
  kFilter,
  kExec,
};

/// Layers that the kernel did not grant; they lower the assurance but do not stop the jail.
enum MissingLayer : uint32_t {
  kNoInodeCaps = 1,
  kNoProcHiding = 2,
  kNoLandlock = 4,
};

struct Message {
  MessageKind kind = MessageKind::kReady;
  Step step = Step::kNone;
  int32_t error = 0;
  uint32_t missing_layers = 0;
  uint32_t landlock_abi = 0;
  int32_t exit_code = -1;  ///< of the main process, -1 when it did not exit
  int32_t signal = 0;      ///< that ended it, 0 when it exited
  uint32_t limit = 0;      ///< LimitHit
  int32_t denied_syscall = -1;
  uint32_t denied_arch = 0;
  uint32_t saw_sigsys = 0;
  uint64_t cpu_ns = 0;
  uint64_t peak_memory_bytes = 0;
};

}  // namespace cb::box
