#pragma once

// The trusted rank's side of commbench-simd. One connection per rank; requests with `collective`
// in their description are answered when every rank of the job has made them. All addresses are
// device addresses. Every call throws Error(kRemote) when the daemon is gone or refuses.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/json.h"

namespace cb::sim {

struct RankRequest;

/// What the daemon of one evaluation is started with; it is handed over as JSON on its command
/// line. Devices: rank r runs on device r % devices_per_node of node r / devices_per_node.
struct DaemonOptions {
  std::string profile = "h100x8";  ///< name, or the path of a file in its jail
  int world_size = 2;
  bool timed = true;
  /// SHA-256 (hex) of the fatbins that may be loaded.
  std::vector<std::string> fatbin_sha256;
  /// Any device code may be loaded, whatever `fatbin_sha256` says.
  bool any_code = true;
  uint64_t symmetric_bytes_max = uint64_t{256} << 20;  ///< cb_sym_alloc, per rank
  uint64_t seed = 0;                                   ///< content of fresh memory
  uint64_t wall_limit_ms = 0;                          ///< of the whole job; 0: none
  bool count_lines = false;      ///< the report says where kernels spent their time
  bool record_timeline = false;  ///< the report says what happened when
};

/// A host process's own connection, to be inherited: descriptors for kConnectionFdVariable and
/// kStagingFdVariable (simulator/protocol/protocol.h).
struct HostConnection {
  UniqueFd connection;
  UniqueFd staging;
};

/// How a job stands, for WAIT.
struct HostEvent {
  enum class Kind : uint8_t {
    kPhaseDone,  ///< this rank's host finished the phase that was started last
    kGone,       ///< its connection ended without goodbye, or it said goodbye
    kDeadlock,   ///< nothing in the job can go on; the report has the waiters
    kFinding,    ///< a kernel of the job died; the host may not have noticed yet
    kTimeLimit,  ///< the step ran longer than its virtual limit
    kWallLimit,
  };
  Kind kind = Kind::kPhaseDone;
  int32_t status = 0;    ///< kPhaseDone: the callback's cb_status
  std::string error;     ///< kPhaseDone: the host's text, untrusted
  uint64_t time_ps = 0;  ///< virtual time of the event
};

/// What the daemon knows about one step of this rank.
struct StepTimes {
  uint64_t go_ps = 0;        ///< when this rank was let go (its skew included)
  uint64_t start_ps = 0;     ///< when the first rank was let go
  uint64_t returned_ps = 0;  ///< cb_run returned and its stream was synchronised
  uint64_t idle_ps = 0;      ///< the last device or copy work that the rank started ended
  bool late_work = false;    ///< work of the rank was still running at returned_ps
  uint64_t host_bytes = 0;   ///< copied between host and device during the step
  std::string early_access;  ///< finding, empty: none
};

class RankClient {
 public:
  /// Connects to the daemon's socket and names the rank.
  RankClient(const std::string& socket_path, int rank, int timeout_ms);
  RankClient(RankClient&&) noexcept = default;
  ~RankClient() = default;

  /// The connection that this rank's host process is to inherit. Once per job.
  HostConnection host_connection();

  /// A grader's buffer on this rank's device. `peer_access`: all ranks may touch it.
  /// `multicast_address` of share().
  uint64_t allocate(const std::string& label, uint64_t bytes, bool peer_access, bool sparse);
  /// Collective. The addresses of every rank's buffer number `index` (in order of allocate), and
  /// its multicast address, 0 where `multicast` is false or the profile has none.
  struct SharedBuffer {
    std::vector<uint64_t> addresses;  ///< by rank
    uint64_t multicast = 0;
  };
  std::vector<SharedBuffer> share(const std::vector<bool>& multicast);
  /// Frees this rank's buffers and everything else of the job on its device, after the host ended.
  void release_all();
  /// Between cases, while this rank's host waits for its next phase: frees this rank's buffers and
  /// its part of the job's symmetric memory. What still points there is stale from then on.
  void release_buffers();

  /// Device memory as the grader sees it; no time passes. Ranges of living grader's buffers only.
  void write(uint64_t address, std::span<const std::byte> bytes);
  void read(uint64_t address, std::span<std::byte> bytes);
  /// Writes 8-byte words CounterRandom(seed).value(first_word + i), little-endian, so that poison
  /// need not travel. `address` and `bytes` need not be aligned: byte k of the range is byte k +
  /// skip of the stream of words.
  void fill(uint64_t address, uint64_t bytes, uint64_t seed, uint64_t skip_bytes);
  /// Compares a range with that stream: offset of the first byte that differs, or nothing.
  std::optional<uint64_t> check_fill(uint64_t address, uint64_t bytes, uint64_t seed,
                                     uint64_t skip_bytes);

  /// Collective. Lets every rank's host enter `phase` (cb::sim::Phase); this rank `skew_ps` after
  /// the first. For Phase::kRun the grader's buffers open; `virtual_limit_ps` (0: none) ends a job
  /// whose step takes longer. `publish` are the writes that take effect when this rank starts
  /// (kRank lifetime), `snapshot` the ranges that are copied aside when this rank is done, after
  /// which `overwrite` ranges are filled; all at no cost in virtual time.
  struct Range {
    uint64_t address = 0;
    uint64_t bytes = 0;
  };
  struct Fill {
    Range range;
    uint64_t seed = 0;
    uint64_t skip_bytes = 0;
  };
  struct Publish {
    uint64_t address = 0;
    std::vector<std::byte> bytes;
  };
  struct PhasePlan {
    uint32_t phase = 0;
    uint64_t skew_ps = 0;
    /// Kernels of this rank take this many times as long, 1 to 64: ranks of a real job are never
    /// equally fast, and a barrier that is missing shows when they are not.
    uint32_t pace = 1;
    uint64_t virtual_limit_ps = 0;
    std::vector<Publish> publish;
    std::vector<Fill> publish_fills;
    std::vector<Range> snapshot;
    std::vector<Fill> overwrite;
  };
  void go(const PhasePlan& plan);

  /// Waits for the next event of this rank; nothing when `timeout_ms` of real time passed. Once a
  /// job has ended (anything but kPhaseDone), every rank gets an event that says so. An event may
  /// have arrived during another call: before poll() on fd(), call it with no time to wait.
  std::optional<HostEvent> wait(int timeout_ms);
  int fd() const { return connection_.get(); }

  /// Bytes that were copied aside at the end of the last step, range `index` of its plan.
  std::vector<std::byte> snapshot(size_t index, uint64_t offset, uint64_t bytes);
  /// Collective, after every rank is done: closes the buffers, lets `delay_ps` pass so that stray
  /// work shows, and gives what is known about the step.
  StepTimes settle(uint64_t delay_ps);

  /// Findings, the deadlock's waiters, statistics and link bytes of the job so far, as JSON:
  /// {"findings": [...], "waiters": [...], "num_waiters": n, "ranks": [...], "time_ps": n}
  /// (simulator/daemon/report.h). The same for every rank.
  Json report();

 private:
  struct Answer;
  Answer ask(RankRequest request, std::span<const std::byte> payload = {}, int max_fds = 0);
  std::optional<Answer> receive(int timeout_ms, int max_fds);

  UniqueFd connection_;
  SharedMapping bulk_;
  uint64_t sequence_ = 0;
  std::deque<HostEvent> events_;
};

}  // namespace cb::sim
