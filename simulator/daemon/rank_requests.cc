#include "simulator/daemon/rank_requests.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/socket.h"
#include "simulator/daemon/report.h"

namespace cb::sim {

struct RankRequests::Connection {
  UniqueFd fd;
  SharedMapping bulk;
  int rank = -1;
  RankRequest open;  ///< the request that is owed a reply

  void send(const RankReply& reply, std::string_view payload, std::span<const int> fds = {}) {
    std::vector<std::byte> message(sizeof reply + payload.size());
    std::memcpy(message.data(), &reply, sizeof reply);
    auto bytes = std::as_bytes(std::span(payload));
    std::copy(bytes.begin(), bytes.end(), message.begin() + sizeof reply);
    // A rank that is gone is noticed when its connection is read.
    send_message(fd.get(), message, fds);
  }
  void answer(std::initializer_list<uint64_t> results = {}, std::string_view payload = {},
              std::span<const int> fds = {}) {
    RankReply reply;
    reply.sequence = open.sequence;
    reply.payload_bytes = static_cast<uint32_t>(payload.size());
    std::copy(results.begin(), results.end(), std::begin(reply.results));
    open.op = RankOp::kInvalid;
    send(reply, payload, fds);
  }
  void refuse(const std::string& why) {
    RankReply reply;
    reply.kind = RankReply::Kind::kRefused;
    reply.sequence = open.sequence;
    reply.payload_bytes = static_cast<uint32_t>(why.size());
    open.op = RankOp::kInvalid;
    send(reply, why);
  }
};

RankRequests::RankRequests(Cluster& cluster, Job& job, const Gate& gate)
    : cluster_(cluster), job_(job), gate_(gate) {
  job_.on_event = [this](int rank, const HostEvent& event) { send_event(rank, event); };
  job_.on_collective = [this](RankOp op) { answer_collective(op); };
}

RankRequests::~RankRequests() = default;

void RankRequests::add(UniqueFd connection) {
  auto made = std::make_unique<Connection>();
  made->fd = std::move(connection);
  connections_.push_back(std::move(made));
  had_connections_ = true;
}

std::vector<int> RankRequests::fds() const {
  std::vector<int> fds;
  for (const auto& connection : connections_) fds.push_back(connection->fd.get());
  return fds;
}

void RankRequests::serve() {
  for (size_t at = 0; at < connections_.size();) {
    Connection& connection = *connections_[at];
    if (serve_one(connection)) {
      ++at;
      continue;
    }
    int rank = connection.rank;
    connections_.erase(connections_.begin() + static_cast<ptrdiff_t>(at));
    // Without its trusted rank a host is nobody's.
    if (rank < 0) continue;
    auto& process = cluster_.processes[static_cast<size_t>(rank)];
    if (process != nullptr) cluster_.end_process(*process, HostProcess::State::kGone);
  }
}

bool RankRequests::serve_one(Connection& connection) {
  std::vector<std::byte> buffer(sizeof(RankRequest) + kRankPayloadBytes);
  for (;;) {
    std::vector<UniqueFd> fds;
    auto received = receive_message_with_fds(connection.fd.get(), buffer, fds, 1, 0);
    if (!received) return true;
    RankRequest request;
    if (*received < sizeof request) return false;
    std::memcpy(&request, buffer.data(), sizeof request);
    if (request.payload_bytes != *received - sizeof request) return false;
    if (connection.open.op != RankOp::kInvalid) return false;
    connection.open = request;
    std::string payload(reinterpret_cast<const char*>(buffer.data()) + sizeof request,
                        request.payload_bytes);
    if (connection.rank < 0 && request.op != RankOp::kHello) return false;
    handle(connection, request, payload, std::move(fds));
  }
}

void RankRequests::handle(Connection& connection, const RankRequest& request,
                          const std::string& payload, std::vector<UniqueFd> fds) {
  switch (request.op) {
    case RankOp::kInvalid:
      return connection.refuse("no such request");
    case RankOp::kHello:
      return hello(connection, request, std::move(fds));
    case RankOp::kHostConnection:
      return host_connection(connection);
    case RankOp::kAllocate:
      return allocate(connection, request, payload);
    case RankOp::kShare:
      return share(connection, payload);
    case RankOp::kReleaseBuffers:
      if (!job_.release_buffers(connection.rank)) {
        return connection.refuse("buffers are released while the host waits");
      }
      return connection.answer();
    case RankOp::kReleaseAll:
      job_.release(connection.rank);
      return connection.answer();
    case RankOp::kWrite:
    case RankOp::kRead:
    case RankOp::kFill:
    case RankOp::kCheckFill:
    case RankOp::kPublish:
      return access(connection, request);
    case RankOp::kGo:
      return go(connection);
    case RankOp::kSnapshot:
      return snapshot(connection, request);
    case RankOp::kSettle:
      return job_.settle(connection.rank, request.args[0]);
    case RankOp::kReport:
      return report(connection, request);
  }
  connection.refuse("no such request");
}

void RankRequests::hello(Connection& connection, const RankRequest& request,
                         std::vector<UniqueFd> fds) {
  auto world_size = static_cast<uint64_t>(cluster_.options.world_size);
  if (request.args[0] >= world_size || fds.size() != 1) return connection.refuse("no such rank");
  auto rank = static_cast<int>(request.args[0]);
  if (connection.rank >= 0 || connection_of(rank) != nullptr) {
    return connection.refuse(fmt::format("rank {} is connected already", rank));
  }
  connection.bulk = SharedMapping(fds.front().get(), kRankBulkBytes);
  connection.rank = rank;
  connection.answer();
}

void RankRequests::host_connection(Connection& connection) {
  auto& slot = cluster_.processes[static_cast<size_t>(connection.rank)];
  if (slot != nullptr) return connection.refuse("the rank's host has its connection already");
  HostProcess& process = cluster_.new_process(connection.rank);
  cb::sim::Connection& host = process.threads.front()->connection;
  int fds[] = {host.host_fd(), host.staging_fd()};
  connection.answer({}, {}, fds);
  host.drop_host_end();
}

void RankRequests::allocate(Connection& connection, const RankRequest& request,
                            const std::string& label) {
  uint64_t address = job_.add_buffer(connection.rank, label, request.args[0], request.args[1] != 0,
                                     request.args[2] != 0);
  if (address == 0) {
    return connection.refuse(fmt::format("no memory for {} bytes of {}", request.args[0], label));
  }
  connection.answer({address});
}

void RankRequests::share(Connection& connection, const std::string& wanted) {
  std::vector<bool> multicast;
  for (char one : wanted) multicast.push_back(one != 0);
  shares_[connection.rank] = multicast;
  if (shares_.size() == static_cast<size_t>(cluster_.options.world_size) || job_.end()) {
    answer_share();
  }
}

void RankRequests::answer_share() {
  std::vector<std::vector<bool>> all;
  for (auto& [rank, multicast] : shares_) all.push_back(multicast);
  bool complete = all.size() == static_cast<size_t>(cluster_.options.world_size);
  bool matches = complete && job_.share(all);
  shares_.clear();
  for (auto& connection : connections_) {
    if (connection->open.op != RankOp::kShare) continue;
    if (!matches) {
      connection->refuse("the ranks' buffers do not match, or the job has ended");
      continue;
    }
    std::vector<uint64_t> words;
    const auto& own = job_.buffers(connection->rank);
    for (size_t index = 0; index < own.size(); ++index) {
      for (int rank = 0; rank < cluster_.options.world_size; ++rank) {
        words.push_back(job_.buffers(rank)[index].base);
      }
      words.push_back(job_.buffers(0)[index].multicast);
    }
    if (words.size() * sizeof(uint64_t) > kRankBulkBytes) {
      connection->refuse("too many buffers");
      continue;
    }
    std::memcpy(connection->bulk.data(), words.data(), words.size() * sizeof(uint64_t));
    connection->answer({own.size(), static_cast<uint64_t>(cluster_.options.world_size)});
  }
}

std::byte* RankRequests::grader_memory(uint64_t address, uint64_t bytes) const {
  const Allocation* found = cluster_.memory.find(address);
  if (found == nullptr || !found->alive || found->kind != Allocation::Kind::kPool ||
      bytes > found->end() - address) {
    return nullptr;
  }
  return reinterpret_cast<std::byte*>(address);
}

void RankRequests::access(Connection& connection, const RankRequest& request) {
  uint64_t address = request.args[0], bytes = request.args[1];
  std::byte* memory = grader_memory(address, bytes);
  bool uses_bulk = request.op != RankOp::kFill && request.op != RankOp::kCheckFill;
  if (memory == nullptr || (uses_bulk && bytes > kRankBulkBytes)) {
    return connection.refuse(fmt::format("{} bytes at {} are no buffer of the grader", bytes,
                                         cluster_.memory.describe(address)));
  }
  std::byte* bulk = connection.bulk.data();
  switch (request.op) {
    case RankOp::kRead:
      std::memcpy(bulk, memory, bytes);
      return connection.answer();
    case RankOp::kCheckFill: {
      uint64_t equal = compare_words(memory, bytes, request.args[2], request.args[3]);
      return connection.answer({equal < bytes ? uint64_t{1} : 0, equal});
    }
    case RankOp::kPublish:
      job_.publish(connection.rank, {address, {bulk, bulk + bytes}});
      return connection.answer();
    case RankOp::kWrite:
      std::memcpy(memory, bulk, bytes);
      break;
    default:
      fill_words(memory, bytes, request.args[2], request.args[3]);
      break;
  }
  cluster_.engine.written(address, bytes);
  connection.answer();
}

void RankRequests::go(Connection& connection) {
  size_t used = 0;
  bool complete = true;
  auto take = [&](auto& value) {
    if (used + sizeof value > kRankBulkBytes) {
      complete = false;
      return;
    }
    std::memcpy(&value, connection.bulk.data() + used, sizeof value);
    used += sizeof value;
  };
  auto take_all = [&](auto& list, uint64_t count) {
    for (uint64_t at = 0; at < count && complete; ++at) take(list.emplace_back());
  };
  GoHeader header;
  take(header);
  PhasePlan plan;
  plan.phase = static_cast<Phase>(header.phase);
  plan.skew = header.skew_ps;
  plan.pace = static_cast<uint32_t>(std::clamp<uint64_t>(header.pace, 1, 64));
  plan.limit = header.virtual_limit_ps;
  take_all(plan.publish_fills, header.num_publish_fills);
  take_all(plan.snapshot, header.num_snapshot);
  take_all(plan.overwrite, header.num_overwrite);
  auto is_ours = [this](const WireRange& range) {
    return grader_memory(range.address, range.bytes) != nullptr;
  };
  for (const auto& one : plan.publish_fills) complete = complete && is_ours(one.range);
  for (const auto& one : plan.snapshot) complete = complete && is_ours(one);
  for (const auto& one : plan.overwrite) complete = complete && is_ours(one.range);
  if (!complete || header.phase == 0 || header.phase > static_cast<uint64_t>(Phase::kExit)) {
    return connection.refuse("a plan that names no phase, or memory that is not the grader's");
  }
  job_.go(connection.rank, std::move(plan));
}

void RankRequests::snapshot(Connection& connection, const RankRequest& request) {
  const auto& all = job_.snapshots(connection.rank);
  uint64_t index = request.args[0], offset = request.args[1], bytes = request.args[2];
  if (index >= all.size() || bytes > kRankBulkBytes || offset > all[index].size() ||
      bytes > all[index].size() - offset) {
    return connection.refuse("no such part of a snapshot");
  }
  std::memcpy(connection.bulk.data(), all[index].data() + offset, bytes);
  connection.answer();
}

void RankRequests::report(Connection& connection, const RankRequest& request) {
  if (request.args[0] == 0) report_ = dump_json(make_report(cluster_, gate_.now()));
  uint64_t offset = std::min<uint64_t>(request.args[0], report_.size());
  uint64_t piece = std::min<uint64_t>(report_.size() - offset, kRankBulkBytes);
  std::memcpy(connection.bulk.data(), report_.data() + offset, piece);
  connection.answer({report_.size(), piece});
}

void RankRequests::answer_collective(RankOp op) {
  if (op == RankOp::kShare) return answer_share();
  for (auto& connection : connections_) {
    if (connection->open.op != op) continue;
    if (op != RankOp::kSettle) {
      connection->answer();
      continue;
    }
    WireStep step = job_.step(connection->rank);
    std::string payload(reinterpret_cast<const char*>(&step), sizeof step);
    payload += job_.early_access(connection->rank);
    connection->answer({}, payload);
  }
}

void RankRequests::send_event(int rank, const HostEvent& event) {
  Connection* connection = connection_of(rank);
  if (connection == nullptr) return;
  RankReply message;
  message.kind = RankReply::Kind::kEvent;
  message.payload_bytes = static_cast<uint32_t>(event.error.size());
  message.results[0] = static_cast<uint64_t>(event.kind);
  message.results[1] = static_cast<uint64_t>(static_cast<int64_t>(event.status));
  message.results[2] = event.time_ps;
  connection->send(message, event.error);
}

RankRequests::Connection* RankRequests::connection_of(int rank) {
  for (auto& connection : connections_) {
    if (connection->rank == rank) return connection.get();
  }
  return nullptr;
}

}  // namespace cb::sim
