#pragma once

// One request while it is handled. Every handler ends with exactly one outcome: `done`, `wait`,
// `again` or `malformed`.

#include <cstring>
#include <optional>
#include <span>
#include <string>

#include "simulator/daemon/cluster.h"
#include "simulator/daemon/cuda_error.h"

namespace cb::sim {

class Call {
 public:
  Call(Cluster& cluster_, HostThread& thread_, const Message& message)
      : cluster(cluster_),
        thread(thread_),
        process(*thread_.process),
        request(message.request),
        payload(message.payload),
        fd(message.fd.get()) {}

  Cluster& cluster;
  HostThread& thread;
  HostProcess& process;
  const Request& request;
  std::span<const std::byte> payload;
  const int fd;  ///< that came along; -1: none

  uint64_t arg(int at) const { return request.args[at]; }
  bool has_flag(CopyFlag flag) const { return (request.flags & flag) != 0; }
  /// What the host pays for a request: hardly anything for a node of a graph.
  Time host_cost(Time usual) const {
    return (request.flags & kPartOfGraph) != 0 ? cluster.costs.graph_node : usual;
  }
  bool is_one_way() const;

  /// A plain structure at the start of the payload; nothing when it is too short.
  template <class T>
  std::optional<T> read_payload() const {
    if (payload.size() < sizeof(T)) return std::nullopt;
    T value;
    std::memcpy(&value, payload.data(), sizeof value);
    return value;
  }

  /// The global number of the process's device `number`. Nothing: the call has failed, because
  /// there is no such device or its context is broken.
  std::optional<int> device(uint64_t number);
  /// The stream `id` on a device. Nothing: the call has failed.
  std::shared_ptr<Stream> stream(uint64_t id, int device);
  std::shared_ptr<Event> event(uint64_t id);

  /// Returns `cost` later. The error of a one-way request breaks the context.
  void done(Time cost, const Answer& answer = {}, std::span<const int> fds = {});
  void fail(int error) { done(cluster.costs.call, {.status = error}); }
  /// Returns when the call says.
  void wait(BlockedCall blocked);
  /// Handles the request again once `is_ready`: something is full.
  void again(std::function<bool()> is_ready, const std::string& what);
  /// The host breaks the protocol: its process is ended.
  void malformed(const std::string& reason);

  bool is_malformed() const { return !fault_.empty(); }
  const std::string& fault() const { return fault_; }

 private:
  int device_ = -1;
  std::string fault_;
};

/// Sends the answer of a call that has waited, and lets its thread go on.
void finish_call(Cluster& cluster, HostThread& thread, const Answer& answer,
                 std::span<const int> fds = {});

/// Handles a request at the clock of its thread.
void handle(Call& call);

}  // namespace cb::sim
