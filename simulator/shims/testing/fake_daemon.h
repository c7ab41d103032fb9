#pragma once

// The simulator's end of the protocol, for tests of the shims: it answers every request in the
// simplest way that a program can go on with, keeps a log, and lets a test change single answers or
// die. It is no model of the simulator: nothing is executed, checked or timed.

#include <array>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "simulator/protocol/protocol.h"

namespace cb::sim {

/// A request as it arrived. `thread` numbers connections in the order in which they were made.
struct SeenRequest {
  Op op = Op::kInvalid;
  uint16_t flags = 0;
  uint32_t thread = 0;
  uint64_t sequence = 0;
  std::array<uint64_t, 9> args = {};
  std::string payload;
};

/// What an answer may look at and set.
struct Answering {
  const SeenRequest& request;
  std::byte* staging;
  Reply& reply;
  std::string& payload;
  std::vector<int>& fds;  ///< sent along; the receiver of the answer does not close them
};

class FakeDaemon {
 public:
  explicit FakeDaemon(uint32_t num_devices = 2);
  ~FakeDaemon();

  /// Runs the scenario program (scenarios.cc) connected to this daemon, to its end.
  CompletedProcess run(const std::string& scenario);

  using Answer = std::function<void(Answering&)>;
  /// Answers `op` with `answer` after the usual answer was prepared.
  void answer(Op op, Answer answer);
  /// Closes all connections instead of answering the `nth` (from 1) request of this kind.
  void die_at(Op op, int nth = 1);
  /// What kModuleLoad answers with: ModuleTable and all that follows.
  void set_module_table(std::string table) { module_table_ = std::move(table); }

  std::vector<SeenRequest> requests() const;
  std::vector<SeenRequest> requests(Op op) const;
  /// Bytes of all images received, pieces put together.
  std::string images() const;
  /// Content of memory that was written by copies.
  std::string memory(uint64_t address, size_t bytes);

  static const DeviceInfo& device();

 private:
  struct Connection;
  std::pair<int, int> connect();
  void serve(Connection& connection);
  void respond(Connection& connection, const SeenRequest& request);
  void prepare(Connection& connection, Answering& answering);
  void copy(Answering& answering, const Copy2D& shape);
  void sleep(Connection& connection, Answering& answering);
  void close_all();
  bool is_one_way(const SeenRequest& request) const;

  uint32_t num_devices_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::unique_ptr<Connection>> connections_;
  std::vector<std::thread> threads_;
  std::vector<SeenRequest> log_;
  std::map<Op, Answer> answers_;
  Op fatal_op_ = Op::kInvalid;
  int fatal_count_ = 0;
  bool dead_ = false;
  std::string module_table_;
  std::string images_;
  static constexpr uint64_t kPageBytes = 4096;
  std::byte& byte_at(uint64_t address) {
    return memory_[address / kPageBytes][address % kPageBytes];
  }
  std::map<uint64_t, std::array<std::byte, kPageBytes>> memory_;  // by page
  std::vector<UniqueFd> pinned_;
  uint64_t next_address_ = kWindowBase + 0x10000;
  uint64_t clock_ns_ = 0;
};

}  // namespace cb::sim
