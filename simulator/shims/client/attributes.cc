// Device attributes and properties. What differs between the simulated devices comes from the
// hardware profile (DeviceInfo); the rest is the same on every A100 and H100: limits of the compute
// capability (CUDA C++ Programming Guide, "Compute Capabilities") and what deviceQuery and
// cudaDeviceGetAttribute report on such machines under Linux. Features that hardware has but this
// library refuses are reported as present: a program then meets the refusal by name instead of
// quietly taking another path than on hardware.

#include "simulator/shims/client/attributes.h"

#include <cuda.h>

#include <cstdio>
#include <cstring>

#include "simulator/protocol/occupancy.h"

namespace cb::sim::client {
namespace {

struct FixedAttribute {
  int attribute;
  int value;
};

// By number, so that a gap shows.
constexpr FixedAttribute kFixed[] = {
    {cudaDevAttrMaxThreadsPerBlock, 1024},
    {cudaDevAttrMaxBlockDimX, 1024},
    {cudaDevAttrMaxBlockDimY, 1024},
    {cudaDevAttrMaxBlockDimZ, 64},
    {cudaDevAttrMaxGridDimX, 0x7fffffff},
    {cudaDevAttrMaxGridDimY, 65535},
    {cudaDevAttrMaxGridDimZ, 65535},
    {cudaDevAttrTotalConstantMemory, 65536},
    {cudaDevAttrWarpSize, kWarpSize},
    {cudaDevAttrMaxPitch, 0x7fffffff},
    {cudaDevAttrTextureAlignment, 512},
    {cudaDevAttrGpuOverlap, 1},
    {cudaDevAttrKernelExecTimeout, 0},
    {cudaDevAttrIntegrated, 0},
    {cudaDevAttrCanMapHostMemory, 1},
    {cudaDevAttrComputeMode, cudaComputeModeDefault},
    {cudaDevAttrMaxTexture1DWidth, 131072},
    {cudaDevAttrMaxTexture2DWidth, 131072},
    {cudaDevAttrMaxTexture2DHeight, 65536},
    {cudaDevAttrMaxTexture3DWidth, 16384},
    {cudaDevAttrMaxTexture3DHeight, 16384},
    {cudaDevAttrMaxTexture3DDepth, 16384},
    {cudaDevAttrMaxTexture2DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture2DLayeredHeight, 32768},
    {cudaDevAttrMaxTexture2DLayeredLayers, 2048},
    {cudaDevAttrSurfaceAlignment, 512},
    {cudaDevAttrConcurrentKernels, 1},
    {cudaDevAttrEccEnabled, 1},
    {cudaDevAttrTccDriver, 0},
    {cudaDevAttrUnifiedAddressing, 1},
    {cudaDevAttrMaxTexture1DLayeredWidth, 32768},
    {cudaDevAttrMaxTexture1DLayeredLayers, 2048},
    {CU_DEVICE_ATTRIBUTE_CAN_TEX2D_GATHER, 1},
    {cudaDevAttrMaxTexture2DGatherWidth, 32768},
    {cudaDevAttrMaxTexture2DGatherHeight, 32768},
    {cudaDevAttrMaxTexture3DWidthAlt, 8192},
    {cudaDevAttrMaxTexture3DHeightAlt, 8192},
    {cudaDevAttrMaxTexture3DDepthAlt, 32768},
    {cudaDevAttrTexturePitchAlignment, 32},
    {cudaDevAttrMaxTextureCubemapWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxTextureCubemapLayeredLayers, 2046},
    {cudaDevAttrMaxSurface1DWidth, 32768},
    {cudaDevAttrMaxSurface2DWidth, 131072},
    {cudaDevAttrMaxSurface2DHeight, 65536},
    {cudaDevAttrMaxSurface3DWidth, 16384},
    {cudaDevAttrMaxSurface3DHeight, 16384},
    {cudaDevAttrMaxSurface3DDepth, 16384},
    {cudaDevAttrMaxSurface1DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface1DLayeredLayers, 2048},
    {cudaDevAttrMaxSurface2DLayeredWidth, 32768},
    {cudaDevAttrMaxSurface2DLayeredHeight, 32768},
    {cudaDevAttrMaxSurface2DLayeredLayers, 2048},
    {cudaDevAttrMaxSurfaceCubemapWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredWidth, 32768},
    {cudaDevAttrMaxSurfaceCubemapLayeredLayers, 2046},
    {cudaDevAttrMaxTexture1DLinearWidth, 268435456},
    {cudaDevAttrMaxTexture2DLinearWidth, 131072},
    {cudaDevAttrMaxTexture2DLinearHeight, 65000},
    {cudaDevAttrMaxTexture2DLinearPitch, 2097120},
    {cudaDevAttrMaxTexture2DMipmappedWidth, 32768},
    {cudaDevAttrMaxTexture2DMipmappedHeight, 32768},
    {cudaDevAttrMaxTexture1DMipmappedWidth, 32768},
    {cudaDevAttrStreamPrioritiesSupported, 1},
    {cudaDevAttrGlobalL1CacheSupported, 1},
    {cudaDevAttrLocalL1CacheSupported, 1},
    {cudaDevAttrManagedMemory, 1},
    {cudaDevAttrIsMultiGpuBoard, 0},
    {cudaDevAttrHostNativeAtomicSupported, 0},
    {cudaDevAttrSingleToDoublePrecisionPerfRatio, 2},
    {cudaDevAttrPageableMemoryAccess, 0},
    {cudaDevAttrConcurrentManagedAccess, 1},
    {cudaDevAttrComputePreemptionSupported, 1},
    // Device code knows registered memory by another address; so do some machines.
    {cudaDevAttrCanUseHostPointerForRegisteredMem, 0},
    // The "V1" memory operations on streams, which CUDA 13 only reserves.
    {cudaDevAttrReserved92, 0},
    {cudaDevAttrReserved93, 0},
    {cudaDevAttrReserved94, 0},
    {cudaDevAttrCooperativeLaunch, 1},
    {cudaDevAttrReserved96, 1},
    {cudaDevAttrCanFlushRemoteWrites, 0},
    {cudaDevAttrHostRegisterSupported, 1},
    {cudaDevAttrPageableMemoryAccessUsesHostPageTables, 0},
    {cudaDevAttrDirectManagedMemAccessFromHost, 0},
    {CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_HANDLE_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_WIN32_KMT_HANDLE_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_GENERIC_COMPRESSION_SUPPORTED, 1},
    {cudaDevAttrMaxAccessPolicyWindowSize, 134213632},
    {CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WITH_CUDA_VMM_SUPPORTED, 1},
    {cudaDevAttrSparseCudaArraySupported, 1},
    {cudaDevAttrHostRegisterReadOnlySupported, 0},
    {cudaDevAttrTimelineSemaphoreInteropSupported, 1},
    {cudaDevAttrMemoryPoolsSupported, 1},
    {cudaDevAttrGPUDirectRDMASupported, 1},
    {cudaDevAttrGPUDirectRDMAFlushWritesOptions, cudaFlushGPUDirectRDMAWritesOptionHost},
    {cudaDevAttrGPUDirectRDMAWritesOrdering, cudaGPUDirectRDMAWritesOrderingOwner},
    {cudaDevAttrMemoryPoolSupportedHandleTypes, cudaMemHandleTypePosixFileDescriptor},
    {cudaDevAttrDeferredMappingCudaArraySupported, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, 1},
    {CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, 1},
    {CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, 1},
    {cudaDevAttrIpcEventSupport, 1},
    {CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_FABRIC_SUPPORTED, 0},
    {CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS, 0},
    {cudaDevAttrNumaConfig, cudaDeviceNumaConfigNone},
    {cudaDevAttrNumaId, -1},
    {cudaDevAttrMpsEnabled, 0},
    {cudaDevAttrHostNumaId, 0},
    {cudaDevAttrD3D12CigSupported, 0},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_ALGORITHM_MASK, 0},
    {CU_DEVICE_ATTRIBUTE_MEM_DECOMPRESS_MAXIMUM_LENGTH, 0},
    {cudaDevAttrVulkanCigSupported, 0},
    {cudaDevAttrReserved141, 1},
    {cudaDevAttrHostNumaMemoryPoolsSupported, 1},
    {cudaDevAttrHostNumaMultinodeIpcSupported, 0},
    {cudaDevAttrHostMemoryPoolsSupported, 1},
    {cudaDevAttrReserved145, 0},
    {CU_DEVICE_ATTRIBUTE_HOST_ALLOC_DMA_BUF_SUPPORTED, 0},
    {cudaDevAttrOnlyPartialHostNativeAtomicSupported, 0},
};

/// PCI device and vendor of an H100 SXM5 and an A100 SXM4.
constexpr int kH100PciId = 0x233010de;
constexpr int kA100PciId = 0x20b010de;
constexpr int kH100SubsystemId = 0x16c110de;
constexpr int kA100SubsystemId = 0x134f10de;

int from_profile(const DeviceInfo& device, int attribute, bool* known) {
  bool hopper = device.compute_major >= 9;
  int domain = 0, bus = 0, slot = 0;
  parse_pci_bus_id(device.pci_bus_id, &domain, &bus, &slot);
  *known = true;
  switch (attribute) {
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return static_cast<int>(device.shared_per_block_bytes);
    case cudaDevAttrMaxRegistersPerBlock:
    case cudaDevAttrMaxRegistersPerMultiprocessor:
      return static_cast<int>(device.registers_per_sm);
    case cudaDevAttrClockRate:
      return static_cast<int>(device.clock_khz);
    case cudaDevAttrMultiProcessorCount:
      return static_cast<int>(device.num_sms);
    case cudaDevAttrPciBusId:
      return bus;
    case cudaDevAttrPciDeviceId:
      return slot;
    case cudaDevAttrPciDomainId:
      return domain;
    case cudaDevAttrMemoryClockRate:
      return static_cast<int>(device.memory_clock_khz);
    case cudaDevAttrGlobalMemoryBusWidth:
      return static_cast<int>(device.memory_bus_bits);
    case cudaDevAttrL2CacheSize:
      return static_cast<int>(device.l2_bytes);
    case cudaDevAttrMaxThreadsPerMultiProcessor:
      return static_cast<int>(device.max_threads_per_sm);
    case cudaDevAttrAsyncEngineCount:
      return static_cast<int>(device.copy_engines);
    case cudaDevAttrComputeCapabilityMajor:
      return static_cast<int>(device.compute_major);
    case cudaDevAttrComputeCapabilityMinor:
      return static_cast<int>(device.compute_minor);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor:
      return static_cast<int>(device.shared_per_sm_bytes);
    case cudaDevAttrMultiGpuBoardGroupID:
      return slot + bus;  // distinct per device, as single-GPU boards have it
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return static_cast<int>(device.shared_per_block_optin_bytes);
    case cudaDevAttrMaxBlocksPerMultiprocessor:
      return static_cast<int>(device.max_blocks_per_sm);
    case cudaDevAttrMaxPersistingL2CacheSize:
      // 30 of 40 MiB on an A100, 31.25 of 50 MiB on an H100.
      return static_cast<int>(hopper ? device.l2_bytes / 8 * 5 : device.l2_bytes / 4 * 3);
    case cudaDevAttrReservedSharedMemoryPerBlock:
      return static_cast<int>(device.reserved_shared_per_block_bytes);
    case cudaDevAttrClusterLaunch:
    case CU_DEVICE_ATTRIBUTE_TENSOR_MAP_ACCESS_SUPPORTED:
      return hopper;
    case cudaDevAttrMemSyncDomainCount:
      return hopper ? 4 : 1;
    case CU_DEVICE_ATTRIBUTE_MULTICAST_SUPPORTED:
      return static_cast<int>(device.multicast_supported);
    case cudaDevAttrGpuPciDeviceId:
      return hopper ? kH100PciId : kA100PciId;
    case cudaDevAttrGpuPciSubsystemId:
      return hopper ? kH100SubsystemId : kA100SubsystemId;
    default:
      *known = false;
      return 0;
  }
}

}  // namespace

bool device_attribute(const DeviceInfo& device, int attribute, int* value) {
  for (const FixedAttribute& fixed : kFixed) {
    if (fixed.attribute != attribute) continue;
    *value = fixed.value;
    return true;
  }
  bool known;
  int found = from_profile(device, attribute, &known);
  if (known) *value = found;
  return known;
}

bool parse_pci_bus_id(const char* text, int* domain, int* bus, int* device) {
  unsigned numbers[3] = {};
  unsigned function = 0;
  int end = 0;
  if (text == nullptr) return false;
  auto complete = [&] { return end > 0 && text[end] == '\0'; };
  bool parsed =
      (sscanf(text, "%x:%x:%x.%x%n", &numbers[0], &numbers[1], &numbers[2], &function, &end) == 4 &&
       complete()) ||
      (sscanf(text, "%x:%x:%x%n", &numbers[0], &numbers[1], &numbers[2], &end) == 3 && complete());
  if (!parsed) {
    numbers[0] = 0;
    parsed =
        sscanf(text, "%x:%x.%x%n", &numbers[1], &numbers[2], &function, &end) == 3 && complete();
  }
  if (!parsed) return false;
  *domain = static_cast<int>(numbers[0]);
  *bus = static_cast<int>(numbers[1]);
  *device = static_cast<int>(numbers[2]);
  return true;
}

}  // namespace cb::sim::client
