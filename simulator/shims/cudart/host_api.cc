#include <fcntl.h>

#include <cstring>

#pragma GCC visibility push(default)
#include "simulator/protocol/host_api.h"
#pragma GCC visibility pop

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/process.h"

using namespace cb::sim::client;
using cb::sim::Op;

namespace {

// Of cb_status in <commbench/task.h>.
constexpr int32_t kInvalid = 1;
constexpr int32_t kInternal = 6;
constexpr int32_t kPeerFailed = 7;

bool is_linked() { return process.link.load() == Link::kUp && this_thread().connected(); }

/// A bootstrap call's status; the simulator's end counts as the peers'.
int32_t status_of(Call& call) { return call.wait_raw() ? call.status() : kPeerFailed; }

}  // namespace

uint32_t commbench_sim_control_wait(uint32_t finished_phase, int32_t status, const char* error) {
  constexpr auto kExit = static_cast<uint32_t>(cb::sim::Phase::kExit);
  if (!is_linked()) return kExit;
  size_t error_bytes = error == nullptr ? 0 : strnlen(error, cb::sim::kMaxPayloadBytes);
  Call call(Op::kControlWait);
  call.args(finished_phase, static_cast<int64_t>(status)).payload({error, error_bytes});
  return call.wait_raw() ? static_cast<uint32_t>(call.result(0)) : kExit;
}

int32_t commbench_sim_allgather(const void* send, void* receive, size_t bytes, int world_size) {
  if (world_size != process.hello.world_size || world_size <= 0 ||
      bytes > cb::sim::kMaxPayloadBytes / static_cast<size_t>(world_size)) {
    return kInvalid;
  }
  if (!is_linked()) return kPeerFailed;
  Call call(Op::kAllgather);
  call.payload({send, bytes}).receive(receive, bytes * world_size);
  int32_t status = status_of(call);
  if (status == 0 && call.received_bytes() != bytes * world_size) return kInternal;
  return status;
}

int32_t commbench_sim_barrier() {
  if (!is_linked()) return kPeerFailed;
  Call call(Op::kBarrier);
  return status_of(call);
}

int32_t commbench_sim_sym_alloc(size_t bytes, int world_size, uint64_t* addresses,
                                uint64_t* multicast) {
  if (world_size != process.hello.world_size || world_size <= 0) return kInvalid;
  if (!is_linked()) return kPeerFailed;
  Call call(Op::kSymAlloc);
  call.args(bytes).receive(addresses, sizeof(uint64_t) * world_size);
  int32_t status = status_of(call);
  if (status != 0) return status;
  if (call.received_bytes() != sizeof(uint64_t) * world_size) return kInternal;
  if (multicast != nullptr) *multicast = call.result(0);
  return 0;
}

int32_t commbench_sim_exchange_fds(int fd, int* received, int world_size) {
  constexpr int kMost = static_cast<int>(cb::sim::kMaxReplyFds);
  bool is_open = fd == -1 || fcntl(fd, F_GETFD) >= 0;
  if (world_size != process.hello.world_size || world_size <= 0 || world_size > kMost ||
      received == nullptr) {
    return kInvalid;
  }
  if (!is_linked()) return kPeerFailed;
  uint8_t gave[kMost] = {};
  int fds[kMost];
  Call call(Op::kExchangeFds);
  // A bad descriptor is an error for all ranks, which the simulator tells them.
  call.args(fd != -1).receive(gave, sizeof gave).receive_fds(fds, kMost);
  if (is_open) call.pass_fd(fd);
  int32_t status = status_of(call);
  if (status != 0) return status;
  int next = 0;
  for (int rank = 0; rank < world_size; ++rank) received[rank] = gave[rank] ? fds[next++] : -1;
  return 0;
}

void commbench_sim_relax() {
  if (!is_linked()) return;
  Call(Op::kRelax).wait_raw();
}
