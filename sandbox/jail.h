#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/process.h"

namespace cb {

/// What the jailed program is, which decides the system calls and files it gets.
enum class JailProfile {
  kBuild,   ///< the compiler: toolchain and headers read-only, no sockets
  kHost,    ///< a rank's host process, which loads the candidate
  kDaemon,  ///< commbench-simd: shared libraries and the sockets it is given
};

/// How far a rank is cut off from the other ranks of its job.
enum class JailScope {
  kRank,  ///< nothing shared: no sockets, no file locks, nothing that another jail could observe
  /// For real GPUs: device nodes, locks, and sockets, SysV memory and /dev/shm that are shared with
  /// the other jails of the same JobNamespaces and with nobody else.
  kJob,
};

/// Caps on what the jail may use; the wall clock is the caller's. 0 means no cap where allowed.
struct JailLimits {
  uint64_t memory_bytes = uint64_t{2} << 30;  ///< of all processes together; required
  unsigned processes = 128;                   ///< processes and threads together; required
  uint64_t cpu_s = 0;                         ///< processor time of the whole jail
  unsigned open_files = 256;                  ///< descriptors of one process
  uint64_t file_bytes = uint64_t{256} << 20;  ///< of one file or memfd; 0: no cap
  uint64_t tmp_bytes = uint64_t{256} << 20;   ///< of /tmp
  uint64_t shm_bytes = uint64_t{64} << 20;    ///< of /dev/shm
  uint64_t output_bytes = uint64_t{1} << 20;  ///< of stdout and stderr together
};

/// Layers that a test switches off to prove that the layer is what stops an attack.
enum JailLayer : unsigned {
  kSyscallFilter = 1,
  kLandlock = 2,
  kResourceLimits = 4,
  kProcHiding = 8,
  kInodeCaps = 16,
  kNetworkNamespace = 32,
  kWatchdog = 64,
  kCgroups = 128,
};

class JobNamespaces;

/// Everything that one jailed program gets. What is not named here, it does not have.
struct JailSpec {
  JailProfile profile = JailProfile::kHost;
  JailScope scope = JailScope::kRank;
  std::vector<std::string> argv;  ///< argv[0] is a path in the jail
  std::vector<std::string> env;   ///< "NAME=value", the complete environment
  /// {host path, jail path} of files and folders, read-only. When the harness is root, a path that
  /// others cannot read is copied in instead of bound, up to 64 MiB in all.
  std::vector<std::pair<std::string, std::string>> read_only;
  /// {jail path, content} of files that exist only in the jail, read-only and executable by no one.
  std::vector<std::pair<std::string, std::string>> files;
  /// Device nodes, by the same path inside and outside; kJob only.
  std::vector<std::string> devices;
  const JobNamespaces* job = nullptr;    ///< to join; kJob only. It decides the box slot
  std::vector<std::pair<int, int>> fds;  ///< {our descriptor, its number in the jail (>= 3)}
  std::string working_folder = "/tmp";   ///< a path in the jail
  JailLimits limits;
  /// Chooses the box user 60000 + slot when the harness is root: one slot per live jail, < 64.
  unsigned box_slot = 0;
  unsigned without_layers = 0;  ///< JailLayer bits; tests only
};

/// The cap that ended the program, or that it ran into before it failed.
enum class LimitHit { kNone, kMemory, kProcesses, kOutput, kFile, kCpu };
const char* to_string(LimitHit limit);

/// What a jail saw. These are facts of trusted processes, never something the payload said.
struct JailOutcome {
  /// Of the payload's main process; SIGKILL when the jail ended it.
  ExitStatus status;
  LimitHit limit = LimitHit::kNone;
  /// A process made a system call that no candidate has a use for; the jail ended at once.
  bool killed_for_syscall = false;
  std::string syscall_name;  ///< "ptrace", "foreign architecture"; empty when unknown
  /// The jail broke down before or while the payload ran: no fault of the payload's.
  bool setup_failed = false;
  std::string setup_message;
  double cpu_seconds = 0;          ///< of the whole jail
  uint64_t peak_memory_bytes = 0;  ///< of the whole jail; 0 unknown
  /// "full", or "degraded: " and what this machine lacks; empty when the jail did not start.
  std::string assurance;
};

/// One program in a jail of its own: namespaces, read-only files, system-call filter, landlock and
/// caps, under a user id that is never root. Destroying it kills every process inside; so does the
/// end of our process, however it ends. For one thread at a time.
class JailedProcess {
 public:
  /// Starts the program and returns once it is about to execute. Throws Error(kRefused) when this
  /// machine cannot jail, Error(kUsage) for an impossible spec, Error(kSystem) otherwise.
  static JailedProcess spawn(const JailSpec& spec);

  JailedProcess(JailedProcess&&) noexcept;
  JailedProcess& operator=(JailedProcess&&) noexcept;
  ~JailedProcess();

  /// Readable in poll() once the jail has ended.
  int pidfd() const;
  /// Host-side process id of the payload's main process; valid while the jail runs.
  pid_t payload_pid() const;

  /// Waits at most `timeout_ms` (-1: for ever). Nothing: still running.
  std::optional<JailOutcome> wait(int timeout_ms);
  /// Kills every process of the jail and returns when they are gone. Harmless after the end.
  void kill();

  /// Captured output so far; the jail keeps reading without our help. Together at most
  /// `output_bytes`.
  std::string standard_output() const;
  std::string standard_error() const;

 private:
  struct State;
  explicit JailedProcess(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

/// Runs a jailed program to its end or to `timeout_ms`, when it is killed.
struct CompletedJail {
  JailOutcome outcome;
  bool timed_out = false;
  std::string standard_output;
  std::string standard_error;
};
CompletedJail run_jailed(const JailSpec& spec, int timeout_ms);

/// Throws Error(kRefused), with the next step, when this machine cannot jail.
void require_jail();

/// What this machine's jails lack, as in JailOutcome::assurance: runs an empty jail to know.
std::string jail_assurance();

}  // namespace cb
