#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/fd.h"

namespace cb {

/// Numeric user and group to become before exec. Supplementary groups are dropped.
struct Credentials {
  uid_t uid = 0;
  gid_t gid = 0;
};

/// One setrlimit: `resource` is an RLIMIT_* constant. `soft` < `hard` where a signal should come
/// before the kill, as with RLIMIT_CPU.
struct ResourceLimit {
  int resource = 0;
  uint64_t soft = 0;
  uint64_t hard = 0;
};

/// What becomes of a child's stdout and stderr.
enum class ChildOutput { kCapture, kInherit, kDiscard };

struct ProcessOptions {
  std::vector<std::string> argv;  ///< argv[0] is looked up in PATH
  std::vector<std::string> env;   ///< "NAME=value", the complete environment
  std::string working_folder;     ///< empty: ours
  /// {our descriptor, its number in the child}. Everything else is closed, stdin is /dev/null.
  std::vector<std::pair<int, int>> fds;
  std::optional<Credentials> credentials;
  std::vector<ResourceLimit> limits;
  ChildOutput output = ChildOutput::kCapture;
  /// Bytes kept of each of stdout and stderr; the rest is drained and counted.
  size_t output_limit = size_t{1} << 20;
  /// SIGKILL for the child when the thread that spawned it ends. Spawn from a thread that lives.
  bool die_with_parent = true;
};

/// How a process ended: exactly one of `code` (it exited) and `signal` (it was killed).
struct ExitStatus {
  std::optional<int> code;
  std::optional<int> signal;

  bool success() const { return code == 0; }
  /// "exit code 3", "killed by SIGSEGV".
  std::string describe() const;
};

/// The one process runner. The child leads a session of its own, so that `kill` reaches its whole
/// process group; what leaves the group must be held by a PID namespace. Destroying a Process
/// kills and reaps it.
class Process {
 public:
  /// Starts the program. Throws Error(kSystem) when it cannot be executed.
  static Process spawn(const ProcessOptions& options);

  Process(Process&& other) noexcept { swap(other); }
  Process& operator=(Process&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Process();

  pid_t pid() const { return pid_; }
  /// Readable in poll() once the process has ended.
  int pidfd() const { return pidfd_.get(); }

  /// Reads captured output and waits at most `timeout_ms` (-1: for ever). Nothing: still running.
  std::optional<ExitStatus> wait(int timeout_ms);
  /// Reads whatever captured output is there now, without blocking.
  void drain();
  /// Sends `signal` to the process group. Harmless after the end.
  void kill(int signal);

  const std::string& standard_output() const { return out_.kept; }
  const std::string& standard_error() const { return err_.kept; }
  /// Bytes written to stdout and stderr in all, kept or not.
  uint64_t output_bytes() const { return out_.total + err_.total; }
  /// User plus system time of the process and the descendants it reaped; set by `wait`.
  double cpu_seconds() const { return cpu_seconds_; }

 private:
  struct Capture {
    UniqueFd fd;
    std::string kept;
    uint64_t total = 0;
    size_t limit = 0;
    void read_available();
  };

  Process() = default;
  void swap(Process& other) noexcept;
  void reap();

  pid_t pid_ = -1;
  UniqueFd pidfd_;
  Capture out_;
  Capture err_;
  std::optional<ExitStatus> status_;
  double cpu_seconds_ = 0;
};

/// Runs a program to its end or to `timeout_ms`, when it is killed (signal SIGKILL).
struct CompletedProcess {
  ExitStatus status;
  bool timed_out = false;
  std::string standard_output;
  std::string standard_error;
  uint64_t output_bytes = 0;
  double cpu_seconds = 0;
};
CompletedProcess run_process(const ProcessOptions& options, int timeout_ms);

/// The variables of our environment named in `names`, as "NAME=value".
std::vector<std::string> environment_subset(const std::vector<std::string>& names);

}  // namespace cb
