#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/devices.h"
#include "simulator/shims/client/pointers.h"
#include "simulator/shims/client/registrations.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

void** as_pointers(CUdeviceptr* address) { return reinterpret_cast<void**>(address); }

}  // namespace

CB_DRIVER CUresult cuMemAlloc_v2(CUdeviceptr* address, size_t bytes) {
  // Unlike cudaMalloc, cuMemAlloc refuses an empty allocation.
  return context_call(
      [&] { return bytes == 0 ? cudaErrorInvalidValue : allocate(as_pointers(address), bytes); });
}

CB_DRIVER CUresult cuMemFree_v2(CUdeviceptr address) {
  return context_call([&] { return release(to_pointer(address)); });
}

CB_DRIVER CUresult cuMemAllocPitch_v2(CUdeviceptr* address, size_t* pitch, size_t width,
                                      size_t height, unsigned element_bytes) {
  return context_call([&] {
    bool valid = element_bytes == 4 || element_bytes == 8 || element_bytes == 16;
    if (!valid || width == 0 || height == 0) return cudaErrorInvalidValue;
    return allocate_pitched(as_pointers(address), pitch, width, height);
  });
}

CB_DRIVER CUresult cuMemAllocHost_v2(void** pointer, size_t bytes) {
  return context_call([&] { return allocate_host(pointer, bytes, 0); });
}

CB_DRIVER CUresult cuMemHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return context_call([&] { return allocate_host(pointer, bytes, flags); });
}

CB_DRIVER CUresult cuMemFreeHost(void* pointer) {
  return context_call([&] { return release_host(pointer); });
}

CB_DRIVER CUresult cuMemHostRegister_v2(void* pointer, size_t bytes, unsigned flags) {
  return context_call([&] { return register_host(pointer, bytes, flags); });
}

CB_DRIVER CUresult cuMemHostUnregister(void* pointer) {
  return context_call([&] { return unregister_host(pointer); });
}

CB_DRIVER CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr* address, void* pointer,
                                                unsigned flags) {
  return context_call([&] {
    if (address == nullptr || flags != 0) return cudaErrorInvalidValue;
    void* known = known_to_devices(pointer, 1);
    if (!is_host_allocation(known)) return cudaErrorInvalidValue;
    *address = reinterpret_cast<CUdeviceptr>(known);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuMemHostGetFlags(unsigned* flags, void* pointer) {
  return context_call([&] {
    Allocation known;
    void* address = known_to_devices(pointer, 1);
    if (flags == nullptr || !is_host_allocation(address) ||
        !find_allocation(reinterpret_cast<uint64_t>(address), &known)) {
      return cudaErrorInvalidValue;
    }
    *flags = known.flags;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuMemGetInfo_v2(size_t* free_bytes, size_t* total_bytes) {
  return context_call([&] { return memory_info(free_bytes, total_bytes); });
}

CB_DRIVER CUresult cuMemGetAddressRange_v2(CUdeviceptr* base, size_t* bytes, CUdeviceptr address) {
  return context_call([&] {
    PointerInfo info;
    cudaError_t error = pointer_info(address, &info);
    if (error != cudaSuccess) return error;
    if (info.kind == cb::sim::PointerKind::kUnknown) return cudaErrorSymbolNotFound;
    if (base != nullptr) *base = info.base;
    if (bytes != nullptr) *bytes = info.bytes;
    return cudaSuccess;
  });
}
