#pragma once

#include <cuda_runtime_api.h>

namespace cb::sim::client {

/// Whether hardware links the two devices; false for a device and itself.
bool can_access_peer(int device, int peer);
/// Peer access from the current device to memory of `peer`.
cudaError_t enable_peer_access(int peer, unsigned flags);
cudaError_t disable_peer_access(int peer);
/// A cudaDeviceP2PAttr (CUdevice_P2PAttribute has the same numbers).
cudaError_t peer_attribute(int* value, int attribute, int device, int peer);
/// Forgets access from and to `device`.
void forget_peer_access(int device);

}  // namespace cb::sim::client
