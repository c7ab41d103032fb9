#pragma once

// The requests of trusted ranks (simulator/client/rank_wire.h).

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "simulator/client/rank_wire.h"
#include "simulator/daemon/gate.h"
#include "simulator/daemon/job.h"

namespace cb::sim {

class RankRequests {
 public:
  RankRequests(Cluster& cluster, Job& job, const Gate& gate);
  ~RankRequests();

  /// A new connection; it names its rank in its first message.
  void add(UniqueFd connection);
  /// Descriptors to be polled.
  std::vector<int> fds() const;
  /// Handles all messages that are there.
  void serve();
  /// Trusted ranks came, and all are gone.
  bool all_gone() const { return had_connections_ && connections_.empty(); }

 private:
  struct Connection;
  bool serve_one(Connection& connection);
  void handle(Connection& connection, const RankRequest& request, const std::string& payload,
              std::vector<UniqueFd> fds);
  void hello(Connection& connection, const RankRequest& request, std::vector<UniqueFd> fds);
  void host_connection(Connection& connection);
  void allocate(Connection& connection, const RankRequest& request, const std::string& label);
  void share(Connection& connection, const std::string& wanted);
  void answer_share();
  void access(Connection& connection, const RankRequest& request);
  void go(Connection& connection);
  void snapshot(Connection& connection, const RankRequest& request);
  void report(Connection& connection, const RankRequest& request);
  void answer_collective(RankOp op);
  void send_event(int rank, const HostEvent& event);
  std::byte* grader_memory(uint64_t address, uint64_t bytes) const;
  Connection* connection_of(int rank);

  Cluster& cluster_;
  Job& job_;
  const Gate& gate_;
  bool had_connections_ = false;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::map<int, std::vector<bool>> shares_;
  std::string report_;
};

}  // namespace cb::sim
