#include "simulator/shims/testing/fake_daemon.h"

#include <sys/socket.h>
#include <algorithm>
#include <cstring>

#include "base/socket.h"

namespace cb::sim {
namespace {

constexpr int kTimeoutMs = 60'000;
constexpr int kConnectionFd = 10;
constexpr int kStagingFd = 11;
/// A sleep that may be woken and is longer than this waits for it; a shorter one just ends.
constexpr uint64_t kEndlessNs = 3'600'000'000'000;

DeviceInfo make_device() {
  DeviceInfo info;
  strcpy(info.name, "NVIDIA H100 80GB HBM3");
  strcpy(info.pci_bus_id, "0000:1b:00.0");
  info.uuid[0] = 7;
  info.global_memory_bytes = uint64_t{80} << 30;
  info.shared_per_block_bytes = 49152;
  info.shared_per_block_optin_bytes = 232448;
  info.shared_per_sm_bytes = 233472;
  info.reserved_shared_per_block_bytes = 1024;
  info.l2_bytes = 50 << 20;
  info.compute_major = 9;
  info.num_sms = 132;
  info.num_gpcs = 8;
  for (uint32_t gpc = 0; gpc < 8; ++gpc) info.gpc_sms[gpc] = gpc < 6 ? 16 : 18;
  info.clock_khz = 1'980'000;
  info.memory_clock_khz = 2'619'000;
  info.memory_bus_bits = 5120;
  info.registers_per_sm = 65536;
  info.max_threads_per_sm = 2048;
  info.max_blocks_per_sm = 32;
  info.copy_engines = 3;
  info.multicast_supported = 1;
  info.peer_mask = 0xff;
  return info;
}

}  // namespace

struct FakeDaemon::Connection {
  uint32_t id = 0;
  UniqueFd fd;
  UniqueFd peer_fd;  // until it is handed over
  UniqueFd staging_fd;
  SharedMapping staging;
  bool ended = false;
  bool woken = false;
};

const DeviceInfo& FakeDaemon::device() {
  static const DeviceInfo info = make_device();
  return info;
}

FakeDaemon::FakeDaemon(uint32_t num_devices) : num_devices_(num_devices) {}

FakeDaemon::~FakeDaemon() {
  close_all();
  // Connections are only made by threads that are joined here.
  for (size_t at = 0; at < threads_.size(); ++at) threads_[at].join();
}

std::pair<int, int> FakeDaemon::connect() {
  auto connection = std::make_unique<Connection>();
  auto [ours, theirs] = seqpacket_pair();
  connection->fd = std::move(ours);
  connection->peer_fd = std::move(theirs);
  connection->staging_fd = sealed_memfd("staging", kStagingBytes);
  connection->staging = SharedMapping(connection->staging_fd.get(), kStagingBytes);
  std::lock_guard lock(mutex_);
  connection->id = static_cast<uint32_t>(connections_.size());
  connections_.push_back(std::move(connection));
  Connection& made = *connections_.back();
  threads_.emplace_back([this, &made] { serve(made); });
  return {made.peer_fd.get(), made.staging_fd.get()};
}

CompletedProcess FakeDaemon::run(const std::string& scenario) {
  auto [fd, staging_fd] = connect();
  ProcessOptions options;
  options.argv = {COMMBENCH_SHIM_SCENARIOS, scenario};
  options.env = {std::string(kConnectionFdVariable) + "=" + std::to_string(kConnectionFd),
                 std::string(kStagingFdVariable) + "=" + std::to_string(kStagingFd)};
  options.fds = {{fd, kConnectionFd}, {staging_fd, kStagingFd}};
  Process process = Process::spawn(options);
  {
    std::lock_guard lock(mutex_);
    connections_.front()->peer_fd.reset();
  }
  CompletedProcess completed;
  auto status = process.wait(kTimeoutMs);
  completed.timed_out = !status;
  if (status) completed.status = *status;
  process.drain();
  if (status) {
    // Its last requests may still be unread.
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      return std::all_of(connections_.begin(), connections_.end(),
                         [](const auto& connection) { return connection->ended; });
    });
  }
  completed.standard_output = process.standard_output();
  completed.standard_error = process.standard_error();
  return completed;
}

void FakeDaemon::serve(Connection& connection) {
  std::vector<std::byte> buffer(sizeof(Request) + kMaxPayloadBytes);
  for (;;) {
    auto received = receive_message(connection.fd.get(), buffer);
    if (!received || *received < sizeof(Request)) break;
    Request raw;
    memcpy(&raw, buffer.data(), sizeof raw);
    SeenRequest request;
    request.op = raw.op;
    request.flags = raw.flags;
    request.thread = connection.id;
    request.sequence = raw.sequence;
    std::copy(std::begin(raw.args), std::end(raw.args), request.args.begin());
    request.payload.assign(reinterpret_cast<char*>(buffer.data()) + sizeof raw,
                           *received - sizeof raw);
    bool die;
    {
      std::lock_guard lock(mutex_);
      log_.push_back(request);
      die = request.op == fatal_op_ && --fatal_count_ == 0;
    }
    if (die) {
      close_all();
      break;
    }
    respond(connection, request);
  }
  std::lock_guard lock(mutex_);
  connection.ended = true;
  shutdown(connection.fd.get(), SHUT_RDWR);
  changed_.notify_all();
}

bool FakeDaemon::is_one_way(const SeenRequest& request) const {
  switch (request.op) {
    case Op::kBye:
    case Op::kThreadWake:
    case Op::kModuleUnload:
    case Op::kStreamCreate:
    case Op::kStreamDestroy:
    case Op::kStreamWait:
    case Op::kEventCreate:
    case Op::kEventDestroy:
    case Op::kEventRecord:
    case Op::kLaunch:
      return true;
    case Op::kMemcpy:
    case Op::kMemcpy2D:
    case Op::kMemset:
      return (request.flags & kCopyOneWay) != 0;
    default:
      return false;
  }
}

void FakeDaemon::respond(Connection& connection, const SeenRequest& request) {
  Reply reply;
  reply.sequence = request.sequence;
  std::string payload;
  std::vector<int> fds;
  Answering answering{request, connection.staging.data(), reply, payload, fds};
  prepare(connection, answering);
  Answer special;
  {
    std::lock_guard lock(mutex_);
    auto found = answers_.find(request.op);
    if (found != answers_.end()) special = found->second;
  }
  if (special) special(answering);
  if (is_one_way(request)) return;
  reply.payload_bytes = static_cast<uint32_t>(payload.size());
  std::vector<std::byte> message(sizeof reply + payload.size());
  memcpy(message.data(), &reply, sizeof reply);
  memcpy(message.data() + sizeof reply, payload.data(), payload.size());
  send_message(connection.fd.get(), message, fds);
  if (request.op == Op::kThreadNew) {
    std::lock_guard lock(mutex_);
    connections_[reply.results[0]]->peer_fd.reset();
  }
}

void FakeDaemon::prepare(Connection& connection, Answering& answering) {
  const SeenRequest& request = answering.request;
  auto& results = answering.reply.results;
  switch (request.op) {
    case Op::kHello: {
      HelloReply hello;
      hello.version = kProtocolVersion;
      hello.world_size = 2;
      hello.num_nodes = 1;
      hello.num_devices = num_devices_;
      hello.thread_id = connection.id;
      answering.payload.assign(reinterpret_cast<const char*>(&hello), sizeof hello);
      for (uint32_t at = 0; at < num_devices_; ++at) {
        DeviceInfo info = device();
        info.pci_bus_id[5] = static_cast<char>('1' + at);
        answering.payload.append(reinterpret_cast<const char*>(&info), sizeof info);
      }
      break;
    }
    case Op::kThreadNew: {
      auto [fd, staging_fd] = connect();
      answering.fds = {fd, staging_fd};
      std::lock_guard lock(mutex_);
      results[0] = connections_.size() - 1;
      break;
    }
    case Op::kThreadJoin: {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return dead_ || connections_[request.args[0]]->ended; });
      break;
    }
    case Op::kTimeNow: {
      std::lock_guard lock(mutex_);
      results[0] = clock_ns_ += 25;
      break;
    }
    case Op::kSleep:
      sleep(connection, answering);
      break;
    case Op::kThreadWake: {
      std::lock_guard lock(mutex_);
      connections_[request.args[0]]->woken = true;
      changed_.notify_all();
      break;
    }
    case Op::kModuleLoad: {
      std::lock_guard lock(mutex_);
      images_.append(reinterpret_cast<char*>(answering.staging), request.args[0]);
      if (request.args[1] != 0) break;
      results[0] = 5;
      results[1] = module_table_.size();
      memcpy(answering.staging, module_table_.data(), module_table_.size());
      break;
    }
    case Op::kSymbolAddress:
      results[0] = kWindowBase + 0x8000 + request.args[1] * 0x1000;
      break;
    case Op::kMalloc:
    case Op::kHostAlloc: {
      std::lock_guard lock(mutex_);
      results[0] = next_address_;
      uint64_t pages = (request.args[0] + 4095) / 4096;
      next_address_ += pages * 4096 + 4096;
      if (request.op == Op::kMalloc) break;
      pinned_.push_back(sealed_memfd("pinned", pages * 4096));
      answering.fds = {pinned_.back().get()};
      break;
    }
    case Op::kMemcpy: {
      Copy2D shape;
      shape.dst = request.args[0];
      shape.src = request.args[1];
      shape.width_bytes = request.args[2];
      shape.height = 1;
      copy(answering, shape);
      break;
    }
    case Op::kMemcpy2D: {
      Copy2D shape;
      memcpy(&shape, request.payload.data(), sizeof shape);
      copy(answering, shape);
      break;
    }
    case Op::kAllgather:
      answering.payload = request.payload + request.payload;
      break;
    default:
      break;
  }
}

void FakeDaemon::copy(Answering& answering, const Copy2D& shape) {
  std::lock_guard lock(mutex_);
  auto* staging = answering.staging;
  for (uint64_t row = 0; row < shape.height; ++row) {
    for (uint64_t column = 0; column < shape.width_bytes; ++column) {
      uint64_t staged = row * shape.width_bytes + column;
      std::byte value = (answering.request.flags & kCopySrcPageable) != 0
                            ? staging[staged]
                            : byte_at(shape.src + row * shape.src_pitch + column);
      if ((answering.request.flags & kCopyDstPageable) != 0) {
        staging[staged] = value;
      } else {
        byte_at(shape.dst + row * shape.dst_pitch + column) = value;
      }
    }
  }
}

void FakeDaemon::sleep(Connection& connection, Answering& answering) {
  std::unique_lock lock(mutex_);
  bool wakeable = answering.request.args[1] != 0;
  if (wakeable && answering.request.args[0] > kEndlessNs) {
    changed_.wait(lock, [&] { return dead_ || connection.woken; });
  }
  bool woken = wakeable && connection.woken;
  if (woken) connection.woken = false;
  if (!woken) clock_ns_ += answering.request.args[0];
  answering.reply.results[0] = woken;
}

void FakeDaemon::answer(Op op, Answer answer) {
  std::lock_guard lock(mutex_);
  answers_[op] = std::move(answer);
}

void FakeDaemon::die_at(Op op, int nth) {
  std::lock_guard lock(mutex_);
  fatal_op_ = op;
  fatal_count_ = nth;
}

void FakeDaemon::close_all() {
  std::lock_guard lock(mutex_);
  dead_ = true;
  for (auto& connection : connections_) shutdown(connection->fd.get(), SHUT_RDWR);
  changed_.notify_all();
}

std::vector<SeenRequest> FakeDaemon::requests() const {
  std::lock_guard lock(mutex_);
  return log_;
}

std::vector<SeenRequest> FakeDaemon::requests(Op op) const {
  std::vector<SeenRequest> found;
  for (const SeenRequest& request : requests()) {
    if (request.op == op) found.push_back(request);
  }
  return found;
}

std::string FakeDaemon::images() const {
  std::lock_guard lock(mutex_);
  return images_;
}

std::string FakeDaemon::memory(uint64_t address, size_t bytes) {
  std::lock_guard lock(mutex_);
  std::string content;
  for (size_t at = 0; at < bytes; ++at) content += static_cast<char>(byte_at(address + at));
  return content;
}

}  // namespace cb::sim
