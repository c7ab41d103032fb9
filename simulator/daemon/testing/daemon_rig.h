#pragma once

// A daemon in a thread of the test, trusted ranks, and hosts that speak the protocol by hand.

#include <array>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "base/file.h"
#include "simulator/client/rank_client.h"
#include "simulator/protocol/protocol.h"

namespace cb::sim {

/// A fat binary that holds `ptx`, as the shims wrap PTX text.
std::string fatbin_of(const std::string& ptx);

/// The host end of one thread's connection.
class RawHost {
 public:
  RawHost() = default;
  RawHost(UniqueFd connection, UniqueFd staging);

  /// Sends a request without waiting for its reply.
  void post(Op op, std::initializer_list<uint64_t> args = {}, uint16_t flags = 0,
            const std::string& payload = {});
  /// Waits for the reply to the last request. status -1: the daemon closed the connection.
  Reply await();
  Reply call(Op op, std::initializer_list<uint64_t> args = {}, uint16_t flags = 0,
             const std::string& payload = {}) {
    post(op, args, flags, payload);
    return await();
  }
  /// Sends any bytes.
  void send_bytes(std::span<const std::byte> bytes);
  void hello();
  void close();

  uint64_t now_ns() { return call(Op::kTimeNow).results[0]; }
  uint64_t malloc(uint64_t bytes) { return call(Op::kMalloc, {bytes, device}).results[0]; }
  uint32_t load_module(const std::string& fatbin);
  void launch(uint32_t module, uint32_t kernel, uint32_t blocks, uint32_t threads,
              const std::vector<uint64_t>& parameters, uint64_t stream = kNullStream);
  /// cudaMemcpy of pageable memory.
  void write(uint64_t address, const std::string& bytes);
  std::string read(uint64_t address, uint64_t bytes);
  uint32_t control_wait(Phase finished, int32_t status = 0, const std::string& error = {});

  std::byte* staging() const { return staging_.data(); }
  const std::string& payload() const { return payload_; }
  std::vector<UniqueFd>& fds() { return fds_; }
  uint64_t device = 0;
  HelloReply greeting;

 private:
  UniqueFd connection_;
  SharedMapping staging_;
  uint64_t sequence_ = 0;
  std::string payload_;
  std::vector<UniqueFd> fds_;
};

class DaemonRig {
 public:
  explicit DaemonRig(DaemonOptions options = {});
  ~DaemonRig();

  RankClient& rank(int number) { return *ranks_[static_cast<size_t>(number)]; }
  RawHost& host(int number) { return hosts_[static_cast<size_t>(number)]; }
  int world_size() const { return static_cast<int>(ranks_.size()); }

  /// Gives every rank a host that has said hello.
  void connect_hosts();
  /// Runs `body` for every rank at once.
  void each(const std::function<void(int rank)>& body);
  /// Lets all hosts, which wait for it, enter the phase.
  void start(Phase phase, uint64_t skew_ps = 0);

 private:
  TempDir folder_{"daemon"};
  std::thread server_;
  std::vector<std::unique_ptr<RankClient>> ranks_;
  std::vector<RawHost> hosts_;
};

}  // namespace cb::sim
