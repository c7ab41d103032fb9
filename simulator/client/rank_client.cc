#include "simulator/client/rank_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "base/socket.h"
#include "simulator/client/rank_wire.h"

namespace cb::sim {

/// One message of the daemon.
struct RankClient::Answer {
  RankReply reply;
  std::vector<std::byte> payload;
  std::vector<UniqueFd> fds;

  std::string text() const {
    return std::string(reinterpret_cast<const char*>(payload.data()), payload.size());
  }
};

namespace {

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorCode::kRemote, message); }

WireFill to_wire(const RankClient::Fill& fill) {
  return {{fill.range.address, fill.range.bytes}, fill.seed, fill.skip_bytes};
}

/// Appends plain values to the bulk memory.
class BulkWriter {
 public:
  explicit BulkWriter(std::byte* bulk) : bulk_(bulk) {}
  template <class T>
  void put(const T& value) {
    if (used_ + sizeof value > kRankBulkBytes) fail("a plan of a phase is too long");
    std::memcpy(bulk_ + used_, &value, sizeof value);
    used_ += sizeof value;
  }

 private:
  std::byte* bulk_;
  size_t used_ = 0;
};

}  // namespace

RankClient::RankClient(const std::string& socket_path, int rank, int timeout_ms)
    : connection_(seqpacket_connect(socket_path, timeout_ms)) {
  UniqueFd memory = sealed_memfd("rank", kRankBulkBytes);
  bulk_ = SharedMapping(memory.get(), kRankBulkBytes);
  RankRequest request;
  request.op = RankOp::kHello;
  request.sequence = ++sequence_;
  request.args[0] = static_cast<uint64_t>(rank);
  int fds[] = {memory.get()};
  std::span<const RankRequest, 1> one(&request, 1);
  if (!send_message(connection_.get(), std::as_bytes(one), fds)) fail("the simulator is gone");
  std::optional<Answer> answer = receive(timeout_ms, 0);
  if (!answer) throw Error(ErrorCode::kTimeout, "the simulator does not answer");
  if (answer->reply.kind == RankReply::Kind::kRefused) fail(answer->text());
}

std::optional<RankClient::Answer> RankClient::receive(int timeout_ms, int max_fds) {
  std::vector<std::byte> buffer(sizeof(RankReply) + kRankPayloadBytes);
  Answer answer;
  std::optional<size_t> received =
      max_fds > 0 ? receive_message_with_fds(connection_.get(), buffer, answer.fds,
                                             static_cast<size_t>(max_fds), timeout_ms)
                  : receive_message(connection_.get(), buffer, timeout_ms);
  if (!received) return std::nullopt;
  if (*received == 0) fail("the simulator is gone");
  if (*received < sizeof answer.reply) fail("the simulator sent an incomplete message");
  std::memcpy(&answer.reply, buffer.data(), sizeof answer.reply);
  if (answer.reply.payload_bytes != *received - sizeof answer.reply) {
    fail("a message of the simulator has another size than it says");
  }
  answer.payload.assign(buffer.begin() + sizeof answer.reply,
                        buffer.begin() + static_cast<ptrdiff_t>(*received));
  return answer;
}

RankClient::Answer RankClient::ask(RankRequest request, std::span<const std::byte> payload,
                                   int max_fds) {
  if (payload.size() > kRankPayloadBytes) fail("a request to the simulator is too long");
  request.sequence = ++sequence_;
  request.payload_bytes = static_cast<uint32_t>(payload.size());
  std::vector<std::byte> message(sizeof request + payload.size());
  std::memcpy(message.data(), &request, sizeof request);
  std::copy(payload.begin(), payload.end(), message.begin() + sizeof request);
  if (!send_message(connection_.get(), message)) fail("the simulator is gone");
  for (;;) {
    Answer answer = std::move(*receive(-1, max_fds));
    const RankReply& reply = answer.reply;
    if (reply.kind == RankReply::Kind::kEvent) {
      events_.push_back({static_cast<HostEvent::Kind>(reply.results[0]),
                         static_cast<int32_t>(reply.results[1]), answer.text(), reply.results[2]});
      continue;
    }
    if (reply.sequence != sequence_) fail("a reply of the simulator answers another request");
    if (reply.kind == RankReply::Kind::kRefused) fail(answer.text());
    return answer;
  }
}

HostConnection RankClient::host_connection() {
  Answer answer = ask({.op = RankOp::kHostConnection}, {}, 2);
  if (answer.fds.size() != 2) fail("the simulator sent no connection for the host");
  return {std::move(answer.fds[0]), std::move(answer.fds[1])};
}

uint64_t RankClient::allocate(const std::string& label, uint64_t bytes, bool peer_access,
                              bool sparse) {
  RankRequest request{.op = RankOp::kAllocate};
  request.args[0] = bytes;
  request.args[1] = peer_access ? 1 : 0;
  request.args[2] = sparse ? 1 : 0;
  return ask(request, std::as_bytes(std::span(label))).reply.results[0];
}

std::vector<RankClient::SharedBuffer> RankClient::share(const std::vector<bool>& multicast) {
  std::vector<std::byte> wanted;
  for (bool one : multicast) wanted.push_back(std::byte{one});
  Answer answer = ask({.op = RankOp::kShare}, wanted);
  uint64_t num_buffers = answer.reply.results[0], world_size = answer.reply.results[1];
  if (num_buffers != multicast.size() ||
      num_buffers * (world_size + 1) * sizeof(uint64_t) > kRankBulkBytes) {
    fail("the simulator shares another number of buffers");
  }
  std::vector<SharedBuffer> buffers(num_buffers);
  const std::byte* at = bulk_.data();
  auto take = [&at] {
    uint64_t value;
    std::memcpy(&value, at, sizeof value);
    at += sizeof value;
    return value;
  };
  for (SharedBuffer& buffer : buffers) {
    for (uint64_t rank = 0; rank < world_size; ++rank) buffer.addresses.push_back(take());
    buffer.multicast = take();
  }
  return buffers;
}

void RankClient::release_buffers() { ask({.op = RankOp::kReleaseBuffers}); }

void RankClient::release_all() { ask({.op = RankOp::kReleaseAll}); }

void RankClient::write(uint64_t address, std::span<const std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    size_t piece = std::min(bytes.size() - done, kRankBulkBytes);
    std::memcpy(bulk_.data(), bytes.data() + done, piece);
    RankRequest request{.op = RankOp::kWrite};
    request.args[0] = address + done;
    request.args[1] = piece;
    ask(request);
    done += piece;
  }
}

void RankClient::read(uint64_t address, std::span<std::byte> bytes) {
  for (size_t done = 0; done < bytes.size();) {
    size_t piece = std::min(bytes.size() - done, kRankBulkBytes);
    RankRequest request{.op = RankOp::kRead};
    request.args[0] = address + done;
    request.args[1] = piece;
    ask(request);
    std::memcpy(bytes.data() + done, bulk_.data(), piece);
    done += piece;
  }
}

void RankClient::fill(uint64_t address, uint64_t bytes, uint64_t seed, uint64_t skip_bytes) {
  RankRequest request{.op = RankOp::kFill};
  request.args[0] = address;
  request.args[1] = bytes;
  request.args[2] = seed;
  request.args[3] = skip_bytes;
  ask(request);
}

std::optional<uint64_t> RankClient::check_fill(uint64_t address, uint64_t bytes, uint64_t seed,
                                               uint64_t skip_bytes) {
  RankRequest request{.op = RankOp::kCheckFill};
  request.args[0] = address;
  request.args[1] = bytes;
  request.args[2] = seed;
  request.args[3] = skip_bytes;
  Answer answer = ask(request);
  if (answer.reply.results[0] == 0) return std::nullopt;
  return answer.reply.results[1];
}

void RankClient::go(const PhasePlan& plan) {
  for (const Publish& publish : plan.publish) {
    for (size_t done = 0; done < publish.bytes.size();) {
      size_t piece = std::min(publish.bytes.size() - done, kRankBulkBytes);
      std::memcpy(bulk_.data(), publish.bytes.data() + done, piece);
      RankRequest request{.op = RankOp::kPublish};
      request.args[0] = publish.address + done;
      request.args[1] = piece;
      ask(request);
      done += piece;
    }
  }
  BulkWriter bulk(bulk_.data());
  bulk.put(GoHeader{plan.phase, plan.skew_ps, plan.pace, plan.virtual_limit_ps,
                    plan.publish_fills.size(), plan.snapshot.size(), plan.overwrite.size()});
  for (const Fill& fill : plan.publish_fills) bulk.put(to_wire(fill));
  for (const Range& range : plan.snapshot) bulk.put(WireRange{range.address, range.bytes});
  for (const Fill& fill : plan.overwrite) bulk.put(to_wire(fill));
  ask({.op = RankOp::kGo});
}

std::optional<HostEvent> RankClient::wait(int timeout_ms) {
  if (events_.empty()) {
    std::optional<Answer> answer = receive(timeout_ms, 0);
    if (!answer) return std::nullopt;
    if (answer->reply.kind != RankReply::Kind::kEvent) fail("the simulator answers no question");
    return HostEvent{static_cast<HostEvent::Kind>(answer->reply.results[0]),
                     static_cast<int32_t>(answer->reply.results[1]), answer->text(),
                     answer->reply.results[2]};
  }
  HostEvent event = std::move(events_.front());
  events_.pop_front();
  return event;
}

std::vector<std::byte> RankClient::snapshot(size_t index, uint64_t offset, uint64_t bytes) {
  std::vector<std::byte> copied(bytes);
  for (uint64_t done = 0; done < bytes;) {
    uint64_t piece = std::min<uint64_t>(bytes - done, kRankBulkBytes);
    RankRequest request{.op = RankOp::kSnapshot};
    request.args[0] = index;
    request.args[1] = offset + done;
    request.args[2] = piece;
    ask(request);
    std::memcpy(copied.data() + done, bulk_.data(), piece);
    done += piece;
  }
  return copied;
}

StepTimes RankClient::settle(uint64_t delay_ps) {
  RankRequest request{.op = RankOp::kSettle};
  request.args[0] = delay_ps;
  Answer answer = ask(request);
  WireStep step;
  if (answer.payload.size() < sizeof step) fail("the simulator sent no times of the step");
  std::memcpy(&step, answer.payload.data(), sizeof step);
  StepTimes times;
  times.go_ps = step.go_ps;
  times.start_ps = step.start_ps;
  times.returned_ps = step.returned_ps;
  times.idle_ps = step.idle_ps;
  times.late_work = step.late_work != 0;
  times.host_bytes = step.host_bytes;
  times.early_access = answer.text().substr(sizeof step);
  return times;
}

Json RankClient::report() {
  std::string text;
  for (;;) {
    RankRequest request{.op = RankOp::kReport};
    request.args[0] = text.size();
    Answer answer = ask(request);
    uint64_t piece = answer.reply.results[1];
    if (piece > kRankBulkBytes) fail("a piece of the report is too long");
    text.append(reinterpret_cast<const char*>(bulk_.data()), piece);
    if (text.size() >= answer.reply.results[0] || piece == 0) break;
  }
  return value_or_throw(parse_json(text, "report of the simulator"));
}

}  // namespace cb::sim
