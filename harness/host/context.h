#pragma once

#include <commbench/task.h>

#include <deque>
#include <vector>

#include "harness/host/host_protocol.h"

/// The job as the candidate sees it, and what its functions need.
struct cb_context {
  cb::host::Message job;
  bool in_step = false;
  /// Peer addresses of every cb_sym_alloc; spans point into them until cb_teardown returns.
  std::deque<std::vector<void*>> symmetric;
};

namespace cb::host {

/// The simulator's side of host_api.h, found in the CUDA runtime library that the loader chose.
struct SimulatorApi {
  uint32_t (*control_wait)(uint32_t finished_phase, int32_t status, const char* error) = nullptr;
  int32_t (*allgather)(const void* send, void* receive, size_t bytes, int world_size) = nullptr;
  int32_t (*barrier)() = nullptr;
  int32_t (*exchange_fds)(int fd, int* received, int world_size);
  int32_t (*sym_alloc)(size_t bytes, int world_size, uint64_t* addresses,
                       uint64_t* multicast) = nullptr;
  void (*relax)() = nullptr;
};
/// Looks the functions up once; false where one is missing, as in NVIDIA's library.
bool load_simulator_api();
const SimulatorApi& simulator_api();

}  // namespace cb::host
