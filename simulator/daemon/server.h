#pragma once

// The daemon's loop: one thread that reads connections, lets virtual time go on, and serves the
// trusted ranks.

#include <poll.h>

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "base/fd.h"
#include "base/random.h"
#include "simulator/daemon/gate.h"
#include "simulator/daemon/rank_requests.h"

namespace cb::sim {

class Server {
 public:
  /// With a listener: serves trusted ranks until all that came are gone.
  Server(const DaemonOptions& options, const Profile& profile, UniqueFd listener);
  /// Without: hosts are started by the caller, who makes their processes in cluster().
  Server(const DaemonOptions& options, const Profile& profile);
  ~Server();

  Cluster& cluster() { return *cluster_; }
  const Gate& gate() const { return gate_; }

  /// Does what can be done, then waits at most `timeout_ms` (-1: for ever) of real time for a
  /// message. Returns what virtual time waits for.
  Gate::Progress step(int timeout_ms);
  /// Serves until all trusted ranks are gone.
  void run();
  /// No trusted rank is connected any more.
  bool is_abandoned() const { return ranks_ != nullptr && ranks_->all_gone(); }

  /// Reads the messages of hosts late, by random times: whatever hosts do must not depend on it.
  void delay_hosts(uint64_t seed) { delays_.emplace(seed); }

  /// Further descriptors that end `step`'s waiting.
  std::vector<int> also_watch;

 private:
  bool read_hosts();
  void read_blocked(HostThread& thread);
  bool take_message(HostThread& thread);
  bool is_held(const HostThread& thread);
  void accept_ranks();
  void wait_for_messages(int timeout_ms);
  bool has_urgent_input();
  void collect_fds();
  void check_memory();

  std::unique_ptr<Cluster> cluster_;
  Gate gate_;
  std::unique_ptr<Job> job_;
  UniqueFd listener_;
  std::unique_ptr<RankRequests> ranks_;
  std::vector<pollfd> polled_;
  std::vector<HostThread*> polled_threads_;  ///< of the last entries of `polled_`
  std::optional<CounterRandom> delays_;
  uint64_t num_delays_ = 0;
  std::map<const HostThread*, std::chrono::steady_clock::time_point> held_until_;
  std::chrono::steady_clock::time_point wall_end_;
  std::chrono::steady_clock::time_point next_memory_check_;
};

}  // namespace cb::sim
