#include "simulator/shims/client/attributes.h"

#include <cuda.h>

#include <cstdio>
#include <cstring>

namespace cb::sim::client {
namespace {

struct Attributes {
  const DeviceInfo& device;
  int operator()(int attribute) const {
    int value = 0;
    device_attribute(device, attribute, &value);
    return value;
  }
};

void set_texture_limits(const DeviceInfo& device, cudaDeviceProp* prop) {
  Attributes value{device};
  for (int axis = 0; axis < 3; ++axis) {
    prop->maxTexture2DLinear[axis] = value(cudaDevAttrMaxTexture2DLinearWidth + axis);
    prop->maxTexture3D[axis] = value(cudaDevAttrMaxTexture3DWidth + axis);
    prop->maxTexture3DAlt[axis] = value(cudaDevAttrMaxTexture3DWidthAlt + axis);
    prop->maxTexture2DLayered[axis] = value(cudaDevAttrMaxTexture2DLayeredWidth + axis);
    prop->maxSurface3D[axis] = value(cudaDevAttrMaxSurface3DWidth + axis);
    prop->maxSurface2DLayered[axis] = value(cudaDevAttrMaxSurface2DLayeredWidth + axis);
  }
  for (int axis = 0; axis < 2; ++axis) {
    prop->maxTexture2D[axis] = value(cudaDevAttrMaxTexture2DWidth + axis);
    prop->maxTexture2DMipmap[axis] = value(cudaDevAttrMaxTexture2DMipmappedWidth + axis);
    prop->maxTexture2DGather[axis] = value(cudaDevAttrMaxTexture2DGatherWidth + axis);
    prop->maxTexture1DLayered[axis] = value(cudaDevAttrMaxTexture1DLayeredWidth + axis);
    prop->maxTextureCubemapLayered[axis] = value(cudaDevAttrMaxTextureCubemapLayeredWidth + axis);
    prop->maxSurface2D[axis] = value(cudaDevAttrMaxSurface2DWidth + axis);
    prop->maxSurface1DLayered[axis] = value(cudaDevAttrMaxSurface1DLayeredWidth + axis);
    prop->maxSurfaceCubemapLayered[axis] = value(cudaDevAttrMaxSurfaceCubemapLayeredWidth + axis);
  }
  prop->maxTexture1D = value(cudaDevAttrMaxTexture1DWidth);
  prop->maxTexture1DMipmap = value(cudaDevAttrMaxTexture1DMipmappedWidth);
  prop->maxTextureCubemap = value(cudaDevAttrMaxTextureCubemapWidth);
  prop->maxSurface1D = value(cudaDevAttrMaxSurface1DWidth);
  prop->maxSurfaceCubemap = value(cudaDevAttrMaxSurfaceCubemapWidth);
}

void set_features(const DeviceInfo& device, cudaDeviceProp* prop) {
  Attributes value{device};
  prop->managedMemory = value(cudaDevAttrManagedMemory);
  prop->isMultiGpuBoard = value(cudaDevAttrIsMultiGpuBoard);
  prop->multiGpuBoardGroupID = value(cudaDevAttrMultiGpuBoardGroupID);
  prop->hostNativeAtomicSupported = value(cudaDevAttrHostNativeAtomicSupported);
  prop->pageableMemoryAccess = value(cudaDevAttrPageableMemoryAccess);
  prop->concurrentManagedAccess = value(cudaDevAttrConcurrentManagedAccess);
  prop->computePreemptionSupported = value(cudaDevAttrComputePreemptionSupported);
  prop->canUseHostPointerForRegisteredMem = value(cudaDevAttrCanUseHostPointerForRegisteredMem);
  prop->cooperativeLaunch = value(cudaDevAttrCooperativeLaunch);
  prop->sharedMemPerBlockOptin = device.shared_per_block_optin_bytes;
  prop->pageableMemoryAccessUsesHostPageTables =
      value(cudaDevAttrPageableMemoryAccessUsesHostPageTables);
  prop->directManagedMemAccessFromHost = value(cudaDevAttrDirectManagedMemAccessFromHost);
  prop->maxBlocksPerMultiProcessor = value(cudaDevAttrMaxBlocksPerMultiprocessor);
  prop->accessPolicyMaxWindowSize = value(cudaDevAttrMaxAccessPolicyWindowSize);
  prop->reservedSharedMemPerBlock = device.reserved_shared_per_block_bytes;
  prop->hostRegisterSupported = value(cudaDevAttrHostRegisterSupported);
  prop->sparseCudaArraySupported = value(cudaDevAttrSparseCudaArraySupported);
  prop->hostRegisterReadOnlySupported = value(cudaDevAttrHostRegisterReadOnlySupported);
  prop->timelineSemaphoreInteropSupported = value(cudaDevAttrTimelineSemaphoreInteropSupported);
  prop->memoryPoolsSupported = value(cudaDevAttrMemoryPoolsSupported);
  prop->gpuDirectRDMASupported = value(cudaDevAttrGPUDirectRDMASupported);
  prop->gpuDirectRDMAFlushWritesOptions = value(cudaDevAttrGPUDirectRDMAFlushWritesOptions);
  prop->gpuDirectRDMAWritesOrdering = value(cudaDevAttrGPUDirectRDMAWritesOrdering);
  prop->memoryPoolSupportedHandleTypes = value(cudaDevAttrMemoryPoolSupportedHandleTypes);
  prop->deferredMappingCudaArraySupported = value(cudaDevAttrDeferredMappingCudaArraySupported);
  prop->ipcEventSupported = value(cudaDevAttrIpcEventSupport);
  prop->clusterLaunch = value(cudaDevAttrClusterLaunch);
  prop->unifiedFunctionPointers = value(CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS);
  prop->deviceNumaConfig = value(cudaDevAttrNumaConfig);
  prop->deviceNumaId = value(cudaDevAttrNumaId);
  prop->mpsEnabled = value(cudaDevAttrMpsEnabled);
  prop->hostNumaId = value(cudaDevAttrHostNumaId);
  prop->gpuPciDeviceID = value(cudaDevAttrGpuPciDeviceId);
  prop->gpuPciSubsystemID = value(cudaDevAttrGpuPciSubsystemId);
  prop->hostNumaMultinodeIpcSupported = value(cudaDevAttrHostNumaMultinodeIpcSupported);
}

}  // namespace

cudaDeviceProp device_properties(const DeviceInfo& device) {
  Attributes value{device};
  cudaDeviceProp prop = {};
  snprintf(prop.name, sizeof prop.name, "%.*s", static_cast<int>(sizeof device.name), device.name);
  memcpy(prop.uuid.bytes, device.uuid, sizeof prop.uuid.bytes);
  prop.totalGlobalMem = device.global_memory_bytes;
  prop.sharedMemPerBlock = device.shared_per_block_bytes;
  prop.regsPerBlock = value(cudaDevAttrMaxRegistersPerBlock);
  prop.warpSize = value(cudaDevAttrWarpSize);
  prop.memPitch = value(cudaDevAttrMaxPitch);
  prop.maxThreadsPerBlock = value(cudaDevAttrMaxThreadsPerBlock);
  for (int axis = 0; axis < 3; ++axis) {
    prop.maxThreadsDim[axis] = value(cudaDevAttrMaxBlockDimX + axis);
    prop.maxGridSize[axis] = value(cudaDevAttrMaxGridDimX + axis);
  }
  prop.totalConstMem = value(cudaDevAttrTotalConstantMemory);
  prop.major = value(cudaDevAttrComputeCapabilityMajor);
  prop.minor = value(cudaDevAttrComputeCapabilityMinor);
  prop.textureAlignment = value(cudaDevAttrTextureAlignment);
  prop.texturePitchAlignment = value(cudaDevAttrTexturePitchAlignment);
  prop.surfaceAlignment = value(cudaDevAttrSurfaceAlignment);
  prop.multiProcessorCount = value(cudaDevAttrMultiProcessorCount);
  prop.integrated = value(cudaDevAttrIntegrated);
  prop.canMapHostMemory = value(cudaDevAttrCanMapHostMemory);
  prop.concurrentKernels = value(cudaDevAttrConcurrentKernels);
  prop.ECCEnabled = value(cudaDevAttrEccEnabled);
  prop.pciBusID = value(cudaDevAttrPciBusId);
  prop.pciDeviceID = value(cudaDevAttrPciDeviceId);
  prop.pciDomainID = value(cudaDevAttrPciDomainId);
  prop.tccDriver = value(cudaDevAttrTccDriver);
  prop.asyncEngineCount = value(cudaDevAttrAsyncEngineCount);
  prop.unifiedAddressing = value(cudaDevAttrUnifiedAddressing);
  prop.memoryBusWidth = value(cudaDevAttrGlobalMemoryBusWidth);
  prop.l2CacheSize = value(cudaDevAttrL2CacheSize);
  prop.persistingL2CacheMaxSize = value(cudaDevAttrMaxPersistingL2CacheSize);
  prop.maxThreadsPerMultiProcessor = value(cudaDevAttrMaxThreadsPerMultiProcessor);
  prop.streamPrioritiesSupported = value(cudaDevAttrStreamPrioritiesSupported);
  prop.globalL1CacheSupported = value(cudaDevAttrGlobalL1CacheSupported);
  prop.localL1CacheSupported = value(cudaDevAttrLocalL1CacheSupported);
  prop.sharedMemPerMultiprocessor = device.shared_per_sm_bytes;
  prop.regsPerMultiprocessor = value(cudaDevAttrMaxRegistersPerMultiprocessor);
  set_texture_limits(device, &prop);
  set_features(device, &prop);
  return prop;
}

}  // namespace cb::sim::client
