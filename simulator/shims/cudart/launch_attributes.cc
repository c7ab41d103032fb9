#include "simulator/shims/cudart/launch_attributes.h"

#include "simulator/shims/client/errors.h"

namespace cb::sim::client {
namespace {

cudaError_t refuse_attribute(cudaLaunchAttributeID id) {
  switch (id) {
    case cudaLaunchAttributeAccessPolicyWindow:
      return CB_REFUSE("cudaLaunchAttributeAccessPolicyWindow");
    case cudaLaunchAttributeProgrammaticEvent:
      return CB_REFUSE("cudaLaunchAttributeProgrammaticEvent");
    case cudaLaunchAttributeMemSyncDomainMap:
      return CB_REFUSE("cudaLaunchAttributeMemSyncDomainMap");
    case cudaLaunchAttributePreferredClusterDimension:
      return CB_REFUSE("cudaLaunchAttributePreferredClusterDimension");
    case cudaLaunchAttributeLaunchCompletionEvent:
      return CB_REFUSE("cudaLaunchAttributeLaunchCompletionEvent");
    case cudaLaunchAttributeDeviceUpdatableKernelNode:
      return CB_REFUSE("cudaLaunchAttributeDeviceUpdatableKernelNode");
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
      return CB_REFUSE("cudaLaunchAttributeNvlinkUtilCentricScheduling");
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t apply(const cudaLaunchAttribute& attribute, LaunchRequest* request) {
  const cudaLaunchAttributeValue& value = attribute.val;
  switch (attribute.id) {
    case cudaLaunchAttributeIgnore:
      return cudaSuccess;
    case cudaLaunchAttributeCooperative:
      request->cooperative = value.cooperative != 0;
      return cudaSuccess;
    case cudaLaunchAttributeClusterDimension:
      request->cluster[0] = value.clusterDim.x;
      request->cluster[1] = value.clusterDim.y;
      request->cluster[2] = value.clusterDim.z;
      return value.clusterDim.x == 0 || value.clusterDim.y == 0 || value.clusterDim.z == 0
                 ? cudaErrorInvalidClusterSize
                 : cudaSuccess;
    case cudaLaunchAttributeProgrammaticStreamSerialization:
      request->programmatic_serialization = value.programmaticStreamSerializationAllowed != 0;
      return cudaSuccess;
    case cudaLaunchAttributePriority:
      request->has_priority = true;
      request->priority = value.priority;
      return cudaSuccess;
    case cudaLaunchAttributePreferredSharedMemoryCarveout:
      // A hint, which never changes whether a launch succeeds.
      return cudaSuccess;
    case cudaLaunchAttributeAccessPolicyWindow:
      // No bytes, no window.
      return value.accessPolicyWindow.num_bytes == 0 ? cudaSuccess : refuse_attribute(attribute.id);
    case cudaLaunchAttributeClusterSchedulingPolicyPreference:
      // Blocks are always spread over the SMs of their GPC, which every policy allows.
      return value.clusterSchedulingPolicyPreference >= cudaClusterSchedulingPolicyDefault &&
                     value.clusterSchedulingPolicyPreference <=
                         cudaClusterSchedulingPolicyLoadBalancing
                 ? cudaSuccess
                 : cudaErrorInvalidValue;
    case cudaLaunchAttributeMemSyncDomain:
      // Domains keep the fences of one kernel from waiting for the stores of another; here they
      // never do.
      return value.memSyncDomain == cudaLaunchMemSyncDomainDefault ||
                     value.memSyncDomain == cudaLaunchMemSyncDomainRemote
                 ? cudaSuccess
                 : cudaErrorInvalidValue;
    case cudaLaunchAttributeNvlinkUtilCentricScheduling:
      return value.nvlinkUtilCentricScheduling == 0 ? cudaSuccess : refuse_attribute(attribute.id);
    default:
      return refuse_attribute(attribute.id);
  }
}

}  // namespace

cudaError_t apply_attributes(const cudaLaunchAttribute* attributes, unsigned count,
                             LaunchRequest* request) {
  if (count > 0 && attributes == nullptr) return cudaErrorInvalidValue;
  for (unsigned at = 0; at < count; ++at) {
    cudaError_t error = apply(attributes[at], request);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace cb::sim::client
