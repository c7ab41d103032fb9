#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/protocol/protocol.h"

namespace cb::sim::client {

struct Stream {
  uint64_t id = 0;
  int device = 0;
  unsigned flags = 0;
  int priority = 0;
  cudaSynchronizationPolicy sync_policy = cudaSyncPolicyAuto;
  cudaLaunchMemSyncDomain domain = cudaLaunchMemSyncDomainDefault;
  cudaLaunchMemSyncDomainMap domain_map = {0, 1};
};

/// Which default stream a null handle means: legacy functions or their _ptsz / _ptds relatives.
enum class DefaultStream { kLegacy, kPerThread };

/// What a cudaStream_t stands for, also when it is one of the default streams of the current
/// device. False for anything that is no stream.
bool find_stream(cudaStream_t handle, DefaultStream null_means, Stream* found);

/// Where its attributes are kept; nullptr for anything that is no stream.
Stream* stream_slot(cudaStream_t handle, DefaultStream null_means);

inline constexpr int kLeastPriority = 0;
inline constexpr int kGreatestPriority = -5;  ///< since compute capability 7.0

cudaError_t create_stream(cudaStream_t* handle, unsigned flags, int priority);
cudaError_t destroy_stream(cudaStream_t handle);
cudaError_t synchronize_stream(cudaStream_t handle, DefaultStream null_means);
cudaError_t query_stream(cudaStream_t handle, DefaultStream null_means);
cudaError_t wait_for_event(cudaStream_t stream, cudaEvent_t event, unsigned flags,
                           DefaultStream null_means);
/// Forgets all of `device`.
void remove_streams_of(int device);

}  // namespace cb::sim::client
