#include "simulator/shims/client/peers.h"

#include <atomic>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {
namespace {

/// Bit p of entry d: device d may use memory of device p.
std::atomic<uint32_t> enabled[kMaxDevices];

cudaError_t set_access(int device, int peer, bool access) {
  return Call(Op::kPeerAccess).args(device, peer, access ? 1 : 0).wait();
}

}  // namespace

bool can_access_peer(int device, int peer) {
  return device != peer && (device_info(device).peer_mask >> peer & 1) != 0;
}

cudaError_t enable_peer_access(int peer, unsigned flags) {
  if (flags != 0) return cudaErrorInvalidValue;
  int device = this_thread().device();
  if (!is_device(peer) || peer == device) return cudaErrorInvalidDevice;
  if (!can_access_peer(device, peer)) return cudaErrorPeerAccessUnsupported;
  uint32_t bit = uint32_t{1} << peer;
  if ((enabled[device].load() & bit) != 0) return cudaErrorPeerAccessAlreadyEnabled;
  cudaError_t error = set_access(device, peer, true);
  if (error == cudaSuccess) enabled[device].fetch_or(bit);
  return error;
}

cudaError_t disable_peer_access(int peer) {
  int device = this_thread().device();
  if (!is_device(peer)) return cudaErrorInvalidDevice;
  uint32_t bit = uint32_t{1} << peer;
  if ((enabled[device].load() & bit) == 0) return cudaErrorPeerAccessNotEnabled;
  cudaError_t error = set_access(device, peer, false);
  if (error == cudaSuccess) enabled[device].fetch_and(~bit);
  return error;
}

cudaError_t peer_attribute(int* value, int attribute, int device, int peer) {
  if (!is_device(device) || !is_device(peer) || device == peer) return cudaErrorInvalidDevice;
  bool linked = can_access_peer(device, peer);
  switch (attribute) {
    case cudaDevP2PAttrPerformanceRank:  // 0 is the best; all links of a node are alike
    case cudaDevP2PAttrOnlyPartialNativeAtomicSupported:
      *value = 0;
      return cudaSuccess;
    case cudaDevP2PAttrAccessSupported:
    case cudaDevP2PAttrNativeAtomicSupported:
    case cudaDevP2PAttrCudaArrayAccessSupported:
      *value = linked;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

void forget_peer_access(int device) {
  enabled[device].store(0);
  for (auto& mask : enabled) mask.fetch_and(~(uint32_t{1} << device));
}

}  // namespace cb::sim::client
