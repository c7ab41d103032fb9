#include "simulator/shims/client/peers.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

CB_API cudaError_t cudaDeviceCanAccessPeer(int* can_access, int device, int peer) {
  return query([&] {
    if (can_access == nullptr) return cudaErrorInvalidValue;
    if (!is_device(device) || !is_device(peer)) return cudaErrorInvalidDevice;
    *can_access = can_access_peer(device, peer);
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags) {
  return api([&] { return enable_peer_access(peer, flags); });
}

CB_API cudaError_t cudaDeviceDisablePeerAccess(int peer) {
  return api([&] { return disable_peer_access(peer); });
}

CB_API cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device,
                                             int peer) {
  return query([&] {
    if (value == nullptr) return cudaErrorInvalidValue;
    return peer_attribute(value, attribute, device, peer);
  });
}
