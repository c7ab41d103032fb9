#pragma once

// A host process, one per rank, and its threads: handles, quotas, and where each thread stands in
// virtual time.

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/daemon/connection.h"
#include "simulator/daemon/work.h"
#include "simulator/protocol/protocol.h"

namespace cb::sim {

struct ModuleInstance;
struct LoadedModule;

/// What one process may hold.
struct ProcessQuota {
  size_t threads = 64;
  size_t streams = 4096;
  size_t events = 65536;
  size_t modules = 256;
  uint64_t image_bytes = uint64_t{16} << 20;        ///< one fatbin
  uint64_t all_images_bytes = uint64_t{128} << 20;  ///< all that a process loads
  size_t unfinished_work = 1024;                    ///< as the queue of a device
  uint64_t staged_bytes = uint64_t{64} << 20;       ///< of pageable copies under way
  uint64_t pending_image_bytes = uint64_t{64} << 20;
};
inline constexpr ProcessQuota kProcessQuota;

/// The reply to a call that is under way.
struct Answer {
  int status = 0;
  uint64_t results[5] = {};
  std::vector<std::byte> payload;
  std::vector<std::shared_ptr<UniqueFd>> fds;  ///< that go along
};

enum class ThreadState : uint8_t {
  kRunning,  ///< in host code: may make a request at its clock
  kPending,  ///< has made one, which is handled when no one can come before it
  kBlocked,  ///< in a call
  kEnded,
};

/// A call that waits: for a time, or for a condition and then a time.
struct BlockedCall {
  std::function<bool()> is_ready;         ///< nullptr: waits for `wake` alone
  Time wake = kNever;                     ///< when it returns, once that is known
  Time after_ready = 0;                   ///< from the condition to the return
  std::function<void(Answer&)> complete;  ///< at the time of the return
  bool again = false;                     ///< handle the request again instead of returning
  bool owes_reply = true;
  bool can_be_woken = false;  ///< by kThreadWake
  std::string what;           ///< "waits for stream 16", for a deadlock's report
};

struct HostThread {
  HostProcess* process = nullptr;
  uint32_t id = 0;
  Connection connection;
  ThreadState state = ThreadState::kRunning;
  Time clock = 0;
  bool said_hello = false;
  bool has_wake = false;  ///< a kThreadWake came while it did not sleep
  Message pending;
  BlockedCall call;
  Time call_start = 0;           ///< of the call that it makes or made last
  bool handles_again = false;    ///< the call is one that was put off
  std::vector<std::byte> image;  ///< pieces of a module so far
  uint32_t idle_polls = 0;       ///< queries and relaxes in a row that found nothing new
  std::map<int, std::shared_ptr<Stream>> own_streams;  ///< kPerThreadStream, by device
};

/// What a process has on one device.
struct DeviceContext {
  int error = 0;  ///< sticky
  std::shared_ptr<Stream> null_stream;
};

struct OpenedMemory {
  uint32_t count = 0;
  int owner_rank = 0;
};

struct HostProcess {
  enum class State : uint8_t { kAlive, kSaidGoodbye, kGone };

  int rank = 0;
  int node = 0;
  int first_device = 0;  ///< global number of the node's device 0
  State state = State::kAlive;
  std::vector<std::unique_ptr<HostThread>> threads;  ///< by id - 1
  std::map<uint64_t, std::shared_ptr<Stream>> streams;
  std::map<uint64_t, std::shared_ptr<Event>> events;
  std::map<uint32_t, std::shared_ptr<LoadedModule>> modules;
  uint32_t next_module = 1;
  uint64_t image_bytes = 0;
  std::map<int, DeviceContext> contexts;  ///< by global device number
  std::map<uint64_t, OpenedMemory> opened;
  std::map<uint64_t, std::shared_ptr<Work>> unfinished;  ///< in the order of enqueueing
  uint64_t next_work = 1;
  std::deque<std::shared_ptr<Work>> functions;  ///< host functions whose turn has come
  std::shared_ptr<Work> running_function;
  HostThread* function_thread = nullptr;  ///< that runs them; nullptr: there is none yet
  uint64_t staged_bytes = 0;
  Time last_work_end = 0;
  uint64_t host_bytes = 0;  ///< copied between host and device, in all
  std::map<Op, uint64_t> api_calls;
  std::string fault;   ///< how it broke the protocol; empty: it did not
  std::string output;  ///< that kernels printed and the process did not fetch yet

  bool is_alive() const { return state == State::kAlive; }
  HostThread& new_thread(Time clock);
  /// nullptr: there is none.
  HostThread* thread(uint64_t id);
  /// The latest clock of its threads.
  Time clock() const;
};

}  // namespace cb::sim
