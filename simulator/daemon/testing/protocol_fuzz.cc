#include "simulator/daemon/testing/protocol_fuzz.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cstring>
#include <memory>

#include "base/random.h"
#include "base/socket.h"
#include "simulator/daemon/server.h"
#include "simulator/daemon/testing/daemon_rig.h"

namespace cb::sim {
namespace {

constexpr char kPtx[] = R"(
.visible .global .align 8 .u64 table[4];
.visible .const .align 4 .u32 constant = 3;
.visible .entry store(.param .u64 memory, .param .u64 value) {
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [memory];
  ld.param.u64 %rd2, [value];
  st.global.u64 [%rd1], %rd2;
  ret;
}
)";
constexpr uint64_t kCanaryBytes = 4096;
/// Rounds of the daemon's loop after a message: far more than any request takes.
constexpr int kStepsPerMessage = 40;

/// One end of a connection that the daemon made, and its staging memory.
struct End {
  UniqueFd fd;
  SharedMapping staging;
  uint64_t sequence = 0;
};

End take_end(HostThread& thread) {
  End end;
  end.fd = UniqueFd(dup(thread.connection.host_fd()));
  end.staging = SharedMapping(thread.connection.staging_fd(), kStagingBytes);
  thread.connection.drop_host_end();
  return end;
}

class Fuzzer {
 public:
  Fuzzer(uint64_t seed, const Profile& profile)
      : random_(seed), server_({.world_size = 2}, profile), fatbin_(fatbin_of(kPtx)) {}

  std::string run(int num_messages);

 private:
  uint64_t draw(uint64_t bound) { return random_.below(next_++, bound); }
  uint64_t draw_value();
  Op draw_op();
  std::string draw_payload(Op op);
  void set_up_honest();
  void start_hostile();
  void send_random();
  void send(End& end, const Request& request, const std::string& payload, size_t cut = 0);
  Reply call(End& end, Op op, std::initializer_list<uint64_t> args, uint16_t flags = 0);
  void pump(int steps);
  void drain(End& end);
  std::string check_honest();

  CounterRandom random_;
  uint64_t next_ = 0;
  Server server_;
  std::string fatbin_;
  End honest_, hostile_;
  uint64_t canary_ = 0;
  std::vector<uint64_t> known_;  ///< values that the daemon answered with
};

uint64_t Fuzzer::draw_value() {
  constexpr uint64_t kSpecial[] = {0,
                                   1,
                                   2,
                                   3,
                                   4,
                                   8,
                                   16,
                                   20,
                                   64,
                                   512,
                                   4096,
                                   65536,
                                   kStagingBytes,
                                   kStagingBytes + 1,
                                   uint64_t{1} << 31,
                                   uint64_t{1} << 32,
                                   uint64_t{1} << 40,
                                   uint64_t{1} << 63,
                                   ~uint64_t{0},
                                   ~uint64_t{0} - 511,
                                   kWindowBase,
                                   kWindowBase + kWindowBytes,
                                   kWindowBase + kWindowBytes - 1};
  switch (draw(6)) {
    case 0:
      return kSpecial[draw(std::size(kSpecial))];
    case 1:
      return draw(24);
    case 2:
      return known_.empty() ? draw(64) : known_[draw(known_.size())];
    case 3:
      return known_.empty() ? draw(64) : known_[draw(known_.size())] + draw(8192) - 4096;
    case 4:
      return canary_ + draw(kCanaryBytes);
    default:
      return random_.value(next_++) >> draw(64);
  }
}

Op Fuzzer::draw_op() {
  constexpr auto kLast = static_cast<uint64_t>(kLastOp);
  // Goodbyes and unknown requests end the process at once: not too often.
  for (;;) {
    auto op = static_cast<Op>(draw(kLast + 2));
    bool is_end = op == Op::kBye || op == Op::kInvalid || static_cast<uint64_t>(op) > kLast ||
                  op == Op::kHello || op == Op::kAllgather || op == Op::kBarrier ||
                  op == Op::kSymAlloc;
    if (!is_end || draw(40) == 0) return op;
  }
}

std::string Fuzzer::draw_payload(Op op) {
  std::string bytes;
  if (op == Op::kLaunch) {
    Launch launch;
    launch.module = static_cast<uint32_t>(draw(4));
    launch.kernel = static_cast<uint32_t>(draw(2));
    launch.grid[draw(3)] = static_cast<uint32_t>(draw(4) == 0 ? draw_value() : draw(4));
    launch.block[draw(3)] = static_cast<uint32_t>(draw(4) == 0 ? draw_value() : draw(64));
    launch.dynamic_shared_bytes = static_cast<uint32_t>(draw(3) == 0 ? draw_value() : 0);
    launch.cluster[draw(3)] = static_cast<uint32_t>(draw(10) == 0 ? draw_value() : 1);
    launch.cooperative = static_cast<uint32_t>(draw(3));
    launch.device = static_cast<uint32_t>(draw(10) == 0 ? draw_value() : draw(3));
    launch.stream = draw(3) == 0 ? draw_value() : draw(24);
    launch.param_bytes = static_cast<uint32_t>(draw(8) == 0 ? draw_value() : 16);
    bytes.assign(reinterpret_cast<char*>(&launch), sizeof launch);
    for (int word = 0; word < 2; ++word) {
      uint64_t value = draw_value();
      bytes.append(reinterpret_cast<char*>(&value), sizeof value);
    }
  } else if (op == Op::kMemcpy2D) {
    Copy2D copy{draw_value(), draw_value(), draw_value(), draw_value(),
                draw(4096),   draw(64),     draw(24),     draw(3)};
    bytes.assign(reinterpret_cast<char*>(&copy), sizeof copy);
  } else if (op == Op::kStreamMemory) {
    for (uint64_t left = 1 + draw(4); left > 0; --left) {
      StreamMemoryOp one{static_cast<uint32_t>(draw(StreamMemoryOp::kLastKind + 2)),
                         static_cast<uint32_t>(draw(2)), draw_value(), draw_value()};
      bytes.append(reinterpret_cast<char*>(&one), sizeof one);
    }
  } else if (draw(4) == 0) {
    bytes.assign(draw(200), static_cast<char>(draw(256)));
  }
  if (!bytes.empty() && draw(6) == 0) bytes[draw(bytes.size())] = static_cast<char>(draw(256));
  if (!bytes.empty() && draw(20) == 0) bytes.resize(draw(bytes.size()));
  return bytes;
}

void Fuzzer::send(End& end, const Request& request, const std::string& payload, size_t cut) {
  std::string message(reinterpret_cast<const char*>(&request), sizeof request);
  message += payload;
  message.resize(message.size() - std::min(cut, message.size() - 1));
  ::send(end.fd.get(), message.data(), message.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
}

void Fuzzer::pump(int steps) {
  for (int step = 0; step < steps; ++step) server_.step(0);
}

void Fuzzer::drain(End& end) {
  std::vector<std::byte> buffer(sizeof(Reply) + kMaxPayloadBytes);
  ssize_t got;
  while ((got = recv(end.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT)) > 0) {
    Reply reply;
    if (static_cast<size_t>(got) < sizeof reply) continue;
    std::memcpy(&reply, buffer.data(), sizeof reply);
    for (uint64_t result : reply.results) {
      if (result != 0 && known_.size() < 256) known_.push_back(result);
    }
  }
}

Reply Fuzzer::call(End& end, Op op, std::initializer_list<uint64_t> args, uint16_t flags) {
  Request request;
  request.op = op;
  request.flags = flags;
  request.sequence = ++end.sequence;
  std::copy(args.begin(), args.end(), std::begin(request.args));
  send(end, request, {});
  std::vector<std::byte> buffer(sizeof(Reply) + kMaxPayloadBytes);
  Reply reply;
  reply.status = -1;
  for (int step = 0; step < 100'000; ++step) {
    server_.step(0);
    ssize_t got = recv(end.fd.get(), buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got < static_cast<ssize_t>(sizeof reply)) continue;
    std::memcpy(&reply, buffer.data(), sizeof reply);
    if (reply.sequence == end.sequence) return reply;
  }
  return reply;
}

void Fuzzer::set_up_honest() {
  honest_ = take_end(*server_.cluster().new_process(1).threads.front());
  call(honest_, Op::kHello, {kProtocolVersion, 0});
  canary_ = call(honest_, Op::kMalloc, {kCanaryBytes, 1}).results[0];
  call(honest_, Op::kMemset, {canary_, 0x5a, 1, kCanaryBytes, 1, 0, kNullStream, 1});
  // Asleep, so that rank 0 need not wait for it.
  Request request;
  request.op = Op::kSleep;
  request.sequence = ++honest_.sequence;
  request.args[0] = uint64_t{1} << 60;
  request.args[1] = 1;
  send(honest_, request, {});
  pump(4);
}

void Fuzzer::start_hostile() {
  hostile_ = take_end(*server_.cluster().new_process(0).threads.front());
  if (draw(20) != 0) call(hostile_, Op::kHello, {kProtocolVersion, 0});
  std::string image = fatbin_;
  if (draw(3) == 0) image[draw(image.size())] = static_cast<char>(draw(256));
  std::memcpy(hostile_.staging.data(), image.data(), image.size());
  call(hostile_, Op::kModuleLoad, {image.size(), 0});
  known_.push_back(call(hostile_, Op::kMalloc, {1 + draw(8192), 0}).results[0]);
  known_.push_back(call(hostile_, Op::kHostAlloc, {1 + draw(8192), 0, 0}).results[0]);
}

void Fuzzer::send_random() {
  Request request;
  request.op = draw_op();
  request.flags = static_cast<uint16_t>(draw(4) == 0 ? draw(65536) : draw(64));
  request.sequence = ++hostile_.sequence;
  for (uint64_t& arg : request.args) arg = draw_value();
  std::string payload = draw_payload(request.op);
  request.payload_bytes = static_cast<uint32_t>(draw(100) == 0 ? draw_value() : payload.size());
  send(hostile_, request, payload, draw(200) == 0 ? draw(120) : 0);
}

std::string Fuzzer::check_honest() {
  HostProcess* process = server_.cluster().processes[1].get();
  if (!process->is_alive()) return "rank 1 is gone";
  const auto* memory = reinterpret_cast<const unsigned char*>(canary_);
  for (uint64_t at = 0; at < kCanaryBytes; ++at) {
    if (memory[at] != 0x5a) return fmt::format("byte {} of rank 1's memory changed", at);
  }
  return {};
}

std::string Fuzzer::run(int num_messages) {
  set_up_honest();
  start_hostile();
  for (int message = 0; message < num_messages; ++message) {
    send_random();
    pump(draw(4) == 0 ? kStepsPerMessage : 3);
    drain(hostile_);
    std::string fault = check_honest();
    if (!fault.empty()) return fmt::format("message {}: {}", message, fault);
    HostProcess* process = server_.cluster().processes[0].get();
    if (process->is_alive() && process->threads.front()->state != ThreadState::kBlocked) continue;
    // Gone, or in a call that only others could end.
    server_.cluster().end_process(*process, HostProcess::State::kGone);
    server_.cluster().bootstrap.reset();
    pump(4);
    start_hostile();
  }
  server_.cluster().end_process(*server_.cluster().processes[0], HostProcess::State::kGone);
  // Rank 1 still gets what it asks for.
  HostThread& thread = *server_.cluster().processes[1]->threads.front();
  if (thread.state == ThreadState::kBlocked) thread.call.wake = thread.clock + 1;
  pump(4);
  if (call(honest_, Op::kMemset, {canary_, 0x33, 1, kCanaryBytes, 1, 0, kNullStream, 1}).status !=
          0 ||
      call(honest_, Op::kDeviceSync, {1}).status != 0) {
    return "rank 1 is not served any more";
  }
  const auto* memory = reinterpret_cast<const unsigned char*>(canary_);
  return memory[7] == 0x33 ? "" : "rank 1's fill did not happen";
}

}  // namespace

std::string fuzz_protocol(uint64_t seed, int num_messages) {
  static const Profile profile = value_or_throw(load_profile("h100x8"));
  return Fuzzer(seed, profile).run(num_messages);
}

}  // namespace cb::sim
