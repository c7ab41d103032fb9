#include "simulator/daemon/testing/daemon_rig.h"

#include <gtest/gtest.h>

#include <cstring>

#include "base/socket.h"
#include "simulator/daemon/server.h"

namespace cb::sim {
namespace {

constexpr int kTimeoutMs = 20'000;

template <class T>
void append(std::string& bytes, const T& value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

std::string fatbin_of(const std::string& ptx) {
  std::string text = ".version 9.0\n.target sm_90\n.address_size 64\n" + ptx;
  text.resize((text.size() / 8 + 1) * 8);
  std::string entry(64, '\0');
  auto patch = [&entry](size_t offset, auto value) {
    std::memcpy(entry.data() + offset, &value, sizeof value);
  };
  patch(0, uint16_t{1});      // PTX
  patch(2, uint16_t{0x101});  // version of the entry
  patch(4, uint32_t{64});     // bytes of this header
  patch(8, uint64_t{text.size()});
  patch(26, uint16_t{9});   // PTX version 9.0
  patch(28, uint32_t{90});  // architecture
  std::string bytes;
  append(bytes, uint32_t{0xba55ed50});
  append(bytes, uint16_t{1});
  append(bytes, uint16_t{16});
  append(bytes, uint64_t{entry.size() + text.size()});
  return bytes + entry + text;
}

RawHost::RawHost(UniqueFd connection, UniqueFd staging)
    : connection_(std::move(connection)), staging_(staging.get(), kStagingBytes) {}

void RawHost::post(Op op, std::initializer_list<uint64_t> args, uint16_t flags,
                   const std::string& payload) {
  Request request;
  request.op = op;
  request.flags = flags;
  request.payload_bytes = static_cast<uint32_t>(payload.size());
  request.sequence = ++sequence_;
  std::copy(args.begin(), args.end(), std::begin(request.args));
  std::string message;
  append(message, request);
  message += payload;
  send_bytes(std::as_bytes(std::span(message)));
}

void RawHost::send_bytes(std::span<const std::byte> bytes) {
  if (connection_) send_message(connection_.get(), bytes);
}

Reply RawHost::await() {
  std::vector<std::byte> buffer(sizeof(Reply) + kMaxPayloadBytes);
  fds_.clear();
  Reply reply;
  reply.status = -1;
  auto received = receive_message_with_fds(connection_.get(), buffer, fds_, 2, kTimeoutMs);
  if (!received) ADD_FAILURE() << "no reply to request " << sequence_;
  if (!received || *received < sizeof reply) return reply;
  std::memcpy(&reply, buffer.data(), sizeof reply);
  EXPECT_EQ(reply.sequence, sequence_);
  payload_.assign(reinterpret_cast<const char*>(buffer.data()) + sizeof reply,
                  *received - sizeof reply);
  return reply;
}

void RawHost::hello() {
  EXPECT_EQ(call(Op::kHello, {kProtocolVersion, 0}).status, 0);
  if (payload_.size() < sizeof greeting) {
    ADD_FAILURE() << "a greeting of " << payload_.size() << " bytes";
    return;
  }
  std::memcpy(&greeting, payload_.data(), sizeof greeting);
  device = static_cast<uint64_t>(greeting.device);
}

void RawHost::close() { connection_.reset(); }

uint32_t RawHost::load_module(const std::string& fatbin) {
  std::memcpy(staging(), fatbin.data(), fatbin.size());
  Reply reply = call(Op::kModuleLoad, {fatbin.size(), 0});
  EXPECT_EQ(reply.status, 0);
  return static_cast<uint32_t>(reply.results[0]);
}

void RawHost::launch(uint32_t module, uint32_t kernel, uint32_t blocks, uint32_t threads,
                     const std::vector<uint64_t>& parameters, uint64_t stream) {
  Launch launch;
  launch.module = module;
  launch.kernel = kernel;
  launch.grid[0] = blocks;
  launch.block[0] = threads;
  launch.device = static_cast<uint32_t>(device);
  launch.stream = stream;
  launch.param_bytes = static_cast<uint32_t>(parameters.size() * sizeof(uint64_t));
  std::string payload;
  append(payload, launch);
  for (uint64_t parameter : parameters) append(payload, parameter);
  post(Op::kLaunch, {}, 0, payload);
}

void RawHost::write(uint64_t address, const std::string& bytes) {
  std::memcpy(staging(), bytes.data(), bytes.size());
  EXPECT_EQ(
      call(Op::kMemcpy, {address, 0, bytes.size(), kNullStream, device}, kCopySrcPageable).status,
      0);
}

std::string RawHost::read(uint64_t address, uint64_t bytes) {
  EXPECT_EQ(call(Op::kMemcpy, {0, address, bytes, kNullStream, device}, kCopyDstPageable).status,
            0);
  return std::string(reinterpret_cast<const char*>(staging()), bytes);
}

uint32_t RawHost::control_wait(Phase finished, int32_t status, const std::string& error) {
  Reply reply =
      call(Op::kControlWait,
           {static_cast<uint64_t>(finished), static_cast<uint64_t>(static_cast<int64_t>(status))},
           0, error);
  return static_cast<uint32_t>(reply.results[0]);
}

DaemonRig::DaemonRig(DaemonOptions options) {
  std::string path = folder_.path() + "/socket";
  UniqueFd listener = seqpacket_listen(path);
  Profile profile = value_or_throw(load_profile(options.profile));
  server_ = std::thread([options, profile, fd = listener.release()] {
    Server server(options, profile, UniqueFd(fd));
    server.run();
  });
  for (int rank = 0; rank < options.world_size; ++rank) {
    ranks_.push_back(std::make_unique<RankClient>(path, rank, kTimeoutMs));
  }
}

DaemonRig::~DaemonRig() {
  hosts_.clear();
  ranks_.clear();
  server_.join();
}

void DaemonRig::connect_hosts() {
  hosts_.clear();
  for (auto& rank : ranks_) {
    HostConnection connection = rank->host_connection();
    hosts_.emplace_back(std::move(connection.connection), std::move(connection.staging));
  }
  // Each answer waits for the other ranks' requests.
  for (RawHost& host : hosts_) host.post(Op::kHello, {kProtocolVersion, 0});
  each([this](int rank) {
    RawHost& one = host(rank);
    EXPECT_EQ(one.await().status, 0);
    std::memcpy(&one.greeting, one.payload().data(), sizeof one.greeting);
    one.device = static_cast<uint64_t>(one.greeting.device);
  });
}

void DaemonRig::each(const std::function<void(int rank)>& body) {
  std::vector<std::thread> threads;
  for (int rank = 0; rank < world_size(); ++rank) threads.emplace_back(body, rank);
  for (std::thread& thread : threads) thread.join();
}

void DaemonRig::start(Phase phase, uint64_t skew_ps) {
  each([&](int number) {
    RankClient::PhasePlan plan;
    plan.phase = static_cast<uint32_t>(phase);
    plan.skew_ps = skew_ps * static_cast<uint64_t>(number);
    rank(number).go(plan);
  });
}

}  // namespace cb::sim
