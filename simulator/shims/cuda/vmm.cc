// Virtual memory management and multicast objects. Handles are the simulator's; what is valid is
// decided there. Here are the checks of structures and of what is not modelled.

#include <fcntl.h>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/client/window.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;
using cb::sim::Op;

namespace {

/// As H100 and A100 report them; of a multicast object, the recommended one is an estimate from
/// what libraries log on H100.
constexpr size_t kGranularity = size_t{2} << 20;
constexpr size_t kMulticastRecommended = size_t{512} << 20;

constexpr unsigned kPosix = CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR;
constexpr unsigned kFabric = CU_MEM_HANDLE_TYPE_FABRIC;

/// Hardware refuses fabric handles where no IMEX domain is set up, which no profile has.
cudaError_t check_handle_types(unsigned long long types) {
  if ((types & kFabric) != 0) return cudaErrorNotPermitted;
  return (types & ~uint64_t{kPosix}) != 0 ? cudaErrorNotSupported : cudaSuccess;
}

cudaError_t check_properties(const CUmemAllocationProp* prop) {
  if (prop == nullptr || prop->type != CU_MEM_ALLOCATION_TYPE_PINNED) return cudaErrorInvalidValue;
  switch (prop->location.type) {
    case CU_MEM_LOCATION_TYPE_DEVICE:
      break;
    case CU_MEM_LOCATION_TYPE_HOST:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA:
    case CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT:
      return CB_REFUSE("virtual memory management of host memory");
    default:
      return cudaErrorInvalidValue;
  }
  if (!is_device(prop->location.id)) return cudaErrorInvalidDevice;
  if (prop->allocFlags.usage != 0) return cudaErrorInvalidValue;
  if (prop->allocFlags.compressionType != CU_MEM_ALLOCATION_COMP_NONE) {
    return CB_REFUSE("compressible memory");
  }
  return check_handle_types(prop->requestedHandleTypes);
}

cudaError_t get_handle(Call& call, CUmemGenericAllocationHandle* handle) {
  cudaError_t error = call.wait();
  if (error == cudaSuccess) *handle = call.result(0);
  return error;
}

cudaError_t set_access(CUdeviceptr address, size_t bytes, const CUmemAccessDesc& wanted) {
  return Call(Op::kMemSetAccess).args(address, bytes, wanted.location.id, wanted.flags).wait();
}

cudaError_t check_location(const CUmemLocation& location) {
  if (location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
    bool host = location.type == CU_MEM_LOCATION_TYPE_HOST ||
                location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA ||
                location.type == CU_MEM_LOCATION_TYPE_HOST_NUMA_CURRENT;
    if (host) return CB_REFUSE("access of the host to virtual memory management's memory");
    return cudaErrorInvalidValue;
  }
  return is_device(location.id) ? cudaSuccess : cudaErrorInvalidDevice;
}

cudaError_t check_multicast(const CUmulticastObjectProp* prop) {
  if (prop == nullptr || prop->flags != 0 || prop->numDevices == 0) return cudaErrorInvalidValue;
  return check_handle_types(prop->handleTypes);
}

}  // namespace

CB_DRIVER CUresult cuMemGetAllocationGranularity(size_t* granularity,
                                                 const CUmemAllocationProp* prop,
                                                 CUmemAllocationGranularity_flags option) {
  return driver_call([&] {
    bool known = option == CU_MEM_ALLOC_GRANULARITY_MINIMUM ||
                 option == CU_MEM_ALLOC_GRANULARITY_RECOMMENDED;
    if (granularity == nullptr || !known) return cudaErrorInvalidValue;
    cudaError_t error = check_properties(prop);
    if (error == cudaSuccess) *granularity = kGranularity;
    return error;
  });
}

CB_DRIVER CUresult cuMemCreate(CUmemGenericAllocationHandle* handle, size_t bytes,
                               const CUmemAllocationProp* prop, unsigned long long flags) {
  return driver_call([&] {
    if (handle == nullptr || flags != 0) return cudaErrorInvalidValue;
    cudaError_t error = check_properties(prop);
    if (error != cudaSuccess) return error;
    Call call(Op::kMemCreate);
    call.args(bytes, prop->location.id, prop->requestedHandleTypes).on(prop->location.id);
    return get_handle(call, handle);
  });
}

CB_DRIVER CUresult cuMemRelease(CUmemGenericAllocationHandle handle) {
  return driver_call([&] { return Call(Op::kMemRelease).args(handle).wait(); });
}

// A hint for the address is not followed: each rank has addresses of its own.
CB_DRIVER CUresult cuMemAddressReserve(CUdeviceptr* address, size_t bytes, size_t alignment,
                                       CUdeviceptr, unsigned long long flags) {
  return driver_call([&] {
    if (address == nullptr || flags != 0) return cudaErrorInvalidValue;
    Call call(Op::kMemReserve);
    call.args(bytes, alignment);
    cudaError_t error = call.wait();
    if (error == cudaSuccess) *address = call.result(0);
    return error;
  });
}

CB_DRIVER CUresult cuMemAddressFree(CUdeviceptr address, size_t bytes) {
  return driver_call([&] { return Call(Op::kMemUnreserve).args(address, bytes).wait(); });
}

CB_DRIVER CUresult cuMemMap(CUdeviceptr address, size_t bytes, size_t offset,
                            CUmemGenericAllocationHandle handle, unsigned long long flags) {
  return driver_call([&] {
    if (flags != 0) return cudaErrorInvalidValue;
    return Call(Op::kMemMap).args(address, bytes, offset, handle).wait();
  });
}

CB_DRIVER CUresult cuMemUnmap(CUdeviceptr address, size_t bytes) {
  return driver_call([&] { return Call(Op::kMemUnmap).args(address, bytes).wait(); });
}

CB_DRIVER CUresult cuMemSetAccess(CUdeviceptr address, size_t bytes, const CUmemAccessDesc* wanted,
                                  size_t count) {
  return driver_call([&] {
    if (wanted == nullptr || count == 0) return cudaErrorInvalidValue;
    for (size_t at = 0; at < count; ++at) {
      cudaError_t error = check_location(wanted[at].location);
      if (error != cudaSuccess) return error;
    }
    cudaError_t error = cudaSuccess;
    for (size_t at = 0; at < count && error == cudaSuccess; ++at) {
      error = set_access(address, bytes, wanted[at]);
    }
    return error;
  });
}

CB_DRIVER CUresult cuMemGetAccess(unsigned long long* flags, const CUmemLocation* location,
                                  CUdeviceptr address) {
  return driver_call([&] {
    if (flags == nullptr || location == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_location(*location);
    if (error != cudaSuccess) return error;
    Call call(Op::kMemGetAccess);
    call.args(address, location->id);
    error = call.wait();
    if (error == cudaSuccess) *flags = call.result(0);
    return error;
  });
}

CB_DRIVER CUresult cuMemRetainAllocationHandle(CUmemGenericAllocationHandle* handle,
                                               void* address) {
  return driver_call([&] {
    if (handle == nullptr) return cudaErrorInvalidValue;
    Call call(Op::kMemRetain);
    call.args(reinterpret_cast<uint64_t>(address));
    return get_handle(call, handle);
  });
}

CB_DRIVER CUresult cuMemGetAllocationPropertiesFromHandle(CUmemAllocationProp* prop,
                                                          CUmemGenericAllocationHandle handle) {
  return driver_call([&] {
    if (prop == nullptr) return cudaErrorInvalidValue;
    Call call(Op::kMemProperties);
    call.args(handle);
    cudaError_t error = call.wait();
    if (error != cudaSuccess) return error;
    if (call.result(0) != 0) return cudaErrorInvalidValue;
    *prop = CUmemAllocationProp();
    prop->type = CU_MEM_ALLOCATION_TYPE_PINNED;
    prop->location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    prop->location.id = static_cast<int>(call.result(1));
    prop->requestedHandleTypes = static_cast<CUmemAllocationHandleType>(call.result(2));
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuMemExportToShareableHandle(void* shareable,
                                                CUmemGenericAllocationHandle handle,
                                                CUmemAllocationHandleType type,
                                                unsigned long long flags) {
  return driver_call([&] {
    if (shareable == nullptr || flags != 0) return cudaErrorInvalidValue;
    cudaError_t error = check_handle_types(type);
    if (error != cudaSuccess || type == CU_MEM_HANDLE_TYPE_NONE) {
      return error == cudaSuccess ? cudaErrorInvalidValue : error;
    }
    int fd;
    Call call(Op::kMemExport);
    call.args(handle).receive_fds(&fd, 1);
    error = call.wait();
    if (error != cudaSuccess) return error;
    if (fd < 0) return cudaErrorUnknown;
    *static_cast<int*>(shareable) = fd;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuMemImportFromShareableHandle(CUmemGenericAllocationHandle* handle,
                                                  void* shareable, CUmemAllocationHandleType type) {
  return driver_call([&] {
    if (handle == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_handle_types(type);
    if (error != cudaSuccess) return error;
    // The descriptor's number is in the pointer, as the driver wants it.
    int fd = static_cast<int>(reinterpret_cast<intptr_t>(shareable));
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR || fcntl(fd, F_GETFD) < 0) {
      return cudaErrorInvalidValue;
    }
    Call call(Op::kMemImport);
    call.pass_fd(fd);
    return get_handle(call, handle);
  });
}

CB_DRIVER CUresult cuMemGetHandleForAddressRange(void* handle, CUdeviceptr address, size_t bytes,
                                                 CUmemRangeHandleType type,
                                                 unsigned long long flags) {
  return driver_call([&] {
    bool known = type == CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD;
    if (handle == nullptr || !known || bytes == 0 || flags > 1 || !in_window(address)) {
      return cudaErrorInvalidValue;
    }
    return CB_REFUSE("dma-buf descriptors");
  });
}

CB_DRIVER CUresult cuMulticastCreate(CUmemGenericAllocationHandle* handle,
                                     const CUmulticastObjectProp* prop) {
  return driver_call([&] {
    if (handle == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_multicast(prop);
    if (error != cudaSuccess) return error;
    Call call(Op::kMulticastCreate);
    call.args(prop->size, prop->numDevices, prop->handleTypes);
    return get_handle(call, handle);
  });
}

CB_DRIVER CUresult cuMulticastAddDevice(CUmemGenericAllocationHandle handle, CUdevice device) {
  return driver_call([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return Call(Op::kMulticastAdd).args(handle, device).on(device).wait();
  });
}

CB_DRIVER CUresult cuMulticastBindMem(CUmemGenericAllocationHandle handle, size_t offset,
                                      CUmemGenericAllocationHandle memory, size_t memory_offset,
                                      size_t bytes, unsigned long long flags) {
  return driver_call([&] {
    if (flags != 0) return cudaErrorInvalidValue;
    return Call(Op::kMulticastBind).args(handle, offset, memory, memory_offset, bytes).wait();
  });
}

CB_DRIVER CUresult cuMulticastBindAddr(CUmemGenericAllocationHandle handle, size_t offset,
                                       CUdeviceptr address, size_t bytes,
                                       unsigned long long flags) {
  return driver_call([&] {
    if (flags != 0) return cudaErrorInvalidValue;
    return Call(Op::kMulticastBindAddress).args(handle, offset, address, bytes).wait();
  });
}

CB_DRIVER CUresult cuMulticastUnbind(CUmemGenericAllocationHandle handle, CUdevice device,
                                     size_t offset, size_t bytes) {
  return driver_call([&] {
    if (!is_device(device)) return cudaErrorInvalidDevice;
    return Call(Op::kMulticastUnbind).args(handle, device, offset, bytes).on(device).wait();
  });
}

CB_DRIVER CUresult cuMulticastGetGranularity(size_t* granularity, const CUmulticastObjectProp* prop,
                                             CUmulticastGranularity_flags option) {
  return driver_call([&] {
    if (granularity == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_multicast(prop);
    if (error != cudaSuccess) return error;
    if (option != CU_MULTICAST_GRANULARITY_MINIMUM &&
        option != CU_MULTICAST_GRANULARITY_RECOMMENDED) {
      return cudaErrorInvalidValue;
    }
    if (device_info(0).multicast_supported == 0) return cudaErrorNotSupported;
    bool minimum = option == CU_MULTICAST_GRANULARITY_MINIMUM;
    *granularity = minimum ? kGranularity : kMulticastRecommended;
    return cudaSuccess;
  });
}
