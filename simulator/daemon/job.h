#pragma once

// A job under trusted ranks: its phases, the grader's buffers, and what ended it. One job is one
// life of the host processes; after every rank has released its resources another may begin.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/client/rank_wire.h"
#include "simulator/daemon/cluster.h"

namespace cb::sim {

/// What a trusted rank asked for with go().
struct PhasePlan {
  Phase phase = Phase::kNone;
  Time skew = 0;
  uint32_t pace = 1;
  Time limit = 0;
  std::vector<WireFill> publish_fills;
  std::vector<WireRange> snapshot;
  std::vector<WireFill> overwrite;
};
struct PublishedBytes {
  uint64_t address = 0;
  std::vector<std::byte> bytes;
};

/// What ended a job.
struct JobEnd {
  HostEvent::Kind kind = HostEvent::Kind::kGone;
  int rank = -1;  ///< whose process or kernel it was; -1: nobody's
  Time time = 0;
};

class Job {
 public:
  explicit Job(Cluster& cluster);

  /// Events for the trusted rank of a host.
  std::function<void(int rank, const HostEvent& event)> on_event;
  /// All ranks have asked for it, or none needs to wait any longer.
  std::function<void(RankOp op)> on_collective;

  // What the gate asks.
  bool waits_for_process() const;
  bool is_frozen() const;
  bool is_halted() const { return end_ && end_->kind != HostEvent::Kind::kFinding; }
  bool is_settling() const { return settle_end_ != kNever; }
  Time next_timer() const { return std::min(settle_end_, limit_end_); }
  void on_timer();

  // What happens to hosts.
  void control_wait(Call& call);
  void process_ended(const HostProcess& process);
  void finding(const Finding& finding);
  void deadlock(Time time) { end_job({HostEvent::Kind::kDeadlock, -1, time}); }
  void wall_limit(Time time) { end_job({HostEvent::Kind::kWallLimit, -1, time}); }
  bool forbids_bootstrap(int rank) const;

  // What trusted ranks ask. Addresses are checked by the caller.
  uint64_t add_buffer(int rank, const std::string& label, uint64_t bytes, bool peer_access,
                      bool sparse);
  void publish(int rank, PublishedBytes bytes);
  void go(int rank, PhasePlan plan);
  void settle(int rank, Time delay);
  WireStep step(int rank) const;
  std::string early_access(int rank) const;
  const std::vector<std::vector<std::byte>>& snapshots(int rank) const;
  /// Makes multicast addresses; false when the ranks' buffers do not match.
  bool share(const std::vector<std::vector<bool>>& multicast);
  struct Buffer {
    uint64_t base = 0;
    uint64_t bytes = 0;
    bool peer_access = false;
    uint64_t multicast = 0;  ///< of rank 0's buffers: the address for all
  };
  const std::vector<Buffer>& buffers(int rank) const;
  /// Everything of the rank goes. When all ranks have said so, another job may begin.
  void release(int rank);
  /// Frees the rank's buffers and symmetric memory between cases; false: its host is running.
  bool release_buffers(int rank);
  bool released(int rank) const { return ranks_[static_cast<size_t>(rank)].released; }

  const std::optional<JobEnd>& end() const { return end_; }

 private:
  struct RankState {
    Phase phase = Phase::kNone;
    HostThread* waiting = nullptr;  ///< in kControlWait
    std::optional<PhasePlan> plan;  ///< of the next phase, until it starts
    PhasePlan current;
    std::vector<PublishedBytes> publishing;
    std::vector<std::vector<std::byte>> snapshots;
    std::vector<Buffer> buffers;
    WireStep step;
    uint64_t host_bytes_before = 0;
    std::optional<Time> settle_delay;
    bool released = false;
    bool case_ended = false;  ///< its buffers are released, those of other ranks not all
  };
  RankState& state(int rank) { return ranks_[static_cast<size_t>(rank)]; }
  void maybe_start();
  void start_rank(int rank, Time start);
  void take_effect(int rank);
  void finish_run(RankState& rank, const HostThread& thread);
  void maybe_settle();
  void settled();
  void set_open(bool open);
  void end_job(const JobEnd& end);
  void reset();
  void free_buffers(int rank);

  Cluster& cluster_;
  std::vector<RankState> ranks_;
  size_t num_running_steps_ = 0;
  Time settle_end_ = kNever;
  Time settled_until_ = 0;
  Time limit_end_ = kNever;
  std::optional<JobEnd> end_;
};

/// Writes the words of a counter's stream, or compares with them: offset of the first byte that
/// differs, or `bytes`. Byte k of the range is byte k + skip_bytes of the stream.
void fill_words(std::byte* at, uint64_t bytes, uint64_t seed, uint64_t skip_bytes);
uint64_t compare_words(const std::byte* at, uint64_t bytes, uint64_t seed, uint64_t skip_bytes);

}  // namespace cb::sim
