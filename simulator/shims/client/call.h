#pragma once

#include <cuda_runtime_api.h>

#include "simulator/protocol/protocol.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/thread.h"
#include "simulator/shims/client/wire.h"

namespace cb::sim::client {

/// One request to the daemon on a thread's connection:
///   Call call(Op::kMalloc); call.args(bytes, device); call.wait(); call.result(0)
class Call {
 public:
  explicit Call(Op op, uint16_t flags = 0) : Call(this_thread(), op, flags) {}
  Call(Thread& thread, Op op, uint16_t flags);

  template <class... Values>
  Call& args(Values... values) {
    static_assert(sizeof...(Values) <= sizeof(Request::args) / sizeof(uint64_t));
    size_t at = 0;
    ((request_.args[at++] = static_cast<uint64_t>(values)), ...);
    return *this;
  }
  /// The device whose context breaks if the reply says so; the current one unless said.
  Call& on(int device) {
    device_ = device;
    return *this;
  }
  /// At most kMaxPayloadBytes together; must stay valid until the call is made.
  Call& payload(Bytes first, Bytes second = {}) {
    first_ = first;
    second_ = second;
    return *this;
  }
  /// Where the reply's payload goes.
  Call& receive(void* payload, size_t capacity) {
    reply_payload_ = payload;
    reply_capacity_ = capacity;
    return *this;
  }
  /// Descriptors that come with the reply; -1 where none came.
  Call& receive_fds(int* fds, int max_fds) {
    fds_ = fds;
    max_fds_ = max_fds;
    return *this;
  }

  /// A descriptor that goes along; it stays the caller's.
  Call& pass_fd(int fd) {
    passed_fd_ = fd;
    return *this;
  }

  /// Sends without asking for a reply. Only for requests that protocol.h marks one-way.
  cudaError_t send();
  /// Sends and waits; the reply's status. An error that breaks a context is remembered.
  cudaError_t wait();
  /// As `wait`, for requests whose status is not a cudaError_t. False when the daemon is gone.
  bool wait_raw();

  uint64_t result(int at) const { return reply_.results[at]; }
  int32_t status() const { return reply_.status; }
  size_t received_bytes() const { return reply_.payload_bytes; }

 private:
  bool post();

  Thread& thread_;
  int device_;
  Request request_;
  Bytes first_, second_;
  Reply reply_;
  void* reply_payload_ = nullptr;
  size_t reply_capacity_ = 0;
  int* fds_ = nullptr;
  int max_fds_ = 0;
  int passed_fd_ = -1;
};

/// Lock of a mutex whose holder may be inside a call. Waiting is a call, too: the simulator answers
/// the holder only when no thread in host code could come before it.
class LockAcrossCalls {
 public:
  explicit LockAcrossCalls(Mutex& mutex);
  ~LockAcrossCalls() { mutex_.unlock(); }
  LockAcrossCalls(const LockAcrossCalls&) = delete;
  LockAcrossCalls& operator=(const LockAcrossCalls&) = delete;

 private:
  Mutex& mutex_;
};

/// True for errors after which a context is of no use any more, and every later call on its device
/// returns the error again.
bool breaks_context(cudaError_t error);

/// Prints what kernels of this process printed. `Call::wait` does it when there is something.
void print_kernel_output();

}  // namespace cb::sim::client
