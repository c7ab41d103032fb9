#include "simulator/shims/client/stream_attributes.h"

#include "simulator/shims/client/attributes.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {
namespace {

bool is_domain_map(const cudaLaunchMemSyncDomainMap& map, int device) {
  int count = 0;
  device_attribute(device_info(device), cudaDevAttrMemSyncDomainCount, &count);
  return map.default_ < count && map.remote < count;
}

int clamped(int priority) {
  return priority > kLeastPriority      ? kLeastPriority
         : priority < kGreatestPriority ? kGreatestPriority
                                        : priority;
}

}  // namespace

cudaError_t set_stream_attribute(cudaStream_t handle, int attribute,
                                 const cudaLaunchAttributeValue* value, DefaultStream null_means) {
  if (value == nullptr) return cudaErrorInvalidValue;
  Stream* stream = stream_slot(handle, null_means);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  switch (attribute) {
    case cudaLaunchAttributeAccessPolicyWindow:
      // No bytes, no window.
      if (value->accessPolicyWindow.num_bytes == 0) return cudaSuccess;
      return CB_REFUSE("cudaStreamAttributeAccessPolicyWindow");
    case cudaLaunchAttributeSynchronizationPolicy:
      // How a waiting thread waits does not show in virtual time.
      if (value->syncPolicy < cudaSyncPolicyAuto ||
          value->syncPolicy > cudaSyncPolicyBlockingSync) {
        return cudaErrorInvalidValue;
      }
      stream->sync_policy = value->syncPolicy;
      return cudaSuccess;
    case cudaLaunchAttributePriority:
      stream->priority = clamped(value->priority);
      return cudaSuccess;
    case cudaLaunchAttributeMemSyncDomain:
      // Domains keep the fences of one kernel from waiting for the stores of another; here they
      // never do.
      if (value->memSyncDomain != cudaLaunchMemSyncDomainDefault &&
          value->memSyncDomain != cudaLaunchMemSyncDomainRemote) {
        return cudaErrorInvalidValue;
      }
      stream->domain = value->memSyncDomain;
      return cudaSuccess;
    case cudaLaunchAttributeMemSyncDomainMap:
      if (!is_domain_map(value->memSyncDomainMap, stream->device)) return cudaErrorInvalidValue;
      stream->domain_map = value->memSyncDomainMap;
      return cudaSuccess;
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
      if (value->nvlinkUtilCentricScheduling == 0) return cudaSuccess;
      return CB_REFUSE("cudaLaunchAttributeNvlinkUtilCentricScheduling");
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t get_stream_attribute(cudaStream_t handle, int attribute,
                                 cudaLaunchAttributeValue* value, DefaultStream null_means) {
  if (value == nullptr) return cudaErrorInvalidValue;
  const Stream* stream = stream_slot(handle, null_means);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  *value = cudaLaunchAttributeValue();
  switch (attribute) {
    case cudaLaunchAttributeAccessPolicyWindow:
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
      return cudaSuccess;
    case cudaLaunchAttributeSynchronizationPolicy:
      value->syncPolicy = stream->sync_policy;
      return cudaSuccess;
    case cudaLaunchAttributePriority:
      value->priority = stream->priority;
      return cudaSuccess;
    case cudaLaunchAttributeMemSyncDomain:
      value->memSyncDomain = stream->domain;
      return cudaSuccess;
    case cudaLaunchAttributeMemSyncDomainMap:
      value->memSyncDomainMap = stream->domain_map;
      return cudaSuccess;
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t copy_stream_attributes(cudaStream_t to_handle, cudaStream_t from_handle,
                                   DefaultStream null_means) {
  Stream* to = stream_slot(to_handle, null_means);
  const Stream* from = stream_slot(from_handle, null_means);
  if (to == nullptr || from == nullptr) return cudaErrorInvalidResourceHandle;
  to->priority = from->priority;
  to->sync_policy = from->sync_policy;
  to->domain = from->domain;
  to->domain_map = from->domain_map;
  return cudaSuccess;
}

}  // namespace cb::sim::client
