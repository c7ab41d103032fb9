#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

struct Event {
  uint64_t id = 0;
  int device = 0;
  unsigned flags = 0;
  bool recorded = false;  ///< in this process, ever
  bool imported = false;
  bool captured = false;  ///< its last record became a node of a graph
};

/// nullptr for anything that is no event.
Event* find_event(cudaEvent_t handle);

/// A handle and a new id on the current device; nullptr when there are too many. The daemon does
/// not know it yet.
Event* new_event(cudaEvent_t* handle, unsigned flags);

/// Takes back a handle that the daemon never heard of.
void drop_event(cudaEvent_t handle);

cudaError_t create_event(cudaEvent_t* handle, unsigned flags);
cudaError_t destroy_event(cudaEvent_t handle);
cudaError_t record_event(cudaEvent_t handle, cudaStream_t stream, unsigned flags,
                         DefaultStream null_means);
cudaError_t synchronize_event(cudaEvent_t handle);
cudaError_t query_event(cudaEvent_t handle);
cudaError_t elapsed_ms(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
/// Forgets all of `device`.
void remove_events_of(int device);

}  // namespace cb::sim::client
