#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/devices.h"
#include "simulator/shims/client/pointers.h"
#include "simulator/shims/client/registrations.h"
#include "simulator/shims/client/window.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

CB_API cudaError_t cudaMalloc(void** pointer, size_t bytes) {
  return api([&] { return allocate(pointer, bytes); });
}

CB_API cudaError_t cudaFree(void* pointer) {
  return api([&] { return release(pointer); });
}

CB_API cudaError_t cudaMallocPitch(void** pointer, size_t* pitch, size_t width, size_t height) {
  return api([&] { return allocate_pitched(pointer, pitch, width, height); });
}

CB_API cudaError_t cudaMalloc3D(cudaPitchedPtr* pitched, cudaExtent extent) {
  return api([&] {
    size_t rows;
    if (pitched == nullptr) return cudaErrorInvalidValue;
    if (__builtin_mul_overflow(extent.height, extent.depth, &rows)) {
      return cudaErrorMemoryAllocation;
    }
    cudaError_t error = allocate_pitched(&pitched->ptr, &pitched->pitch, extent.width, rows);
    if (error != cudaSuccess) return error;
    pitched->xsize = extent.width;
    pitched->ysize = extent.height;
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaHostAlloc(void** pointer, size_t bytes, unsigned flags) {
  return api([&] { return allocate_host(pointer, bytes, flags); });
}

CB_API cudaError_t cudaMallocHost(void** pointer, size_t bytes) {
  return api([&] { return allocate_host(pointer, bytes, cudaHostAllocDefault); });
}

CB_API cudaError_t cudaFreeHost(void* pointer) {
  return api([&] { return release_host(pointer); });
}

CB_API cudaError_t cudaHostRegister(void* pointer, size_t bytes, unsigned flags) {
  return api([&] { return register_host(pointer, bytes, flags); });
}

CB_API cudaError_t cudaHostUnregister(void* pointer) {
  return api([&] { return unregister_host(pointer); });
}

CB_API cudaError_t cudaHostGetDevicePointer(void** device_pointer, void* pointer, unsigned flags) {
  return api([&] {
    if (device_pointer == nullptr || flags != 0) return cudaErrorInvalidValue;
    void* known = known_to_devices(pointer, 1);
    if (!is_host_allocation(known)) return cudaErrorInvalidValue;
    *device_pointer = known;
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaHostGetFlags(unsigned* flags, void* pointer) {
  return api([&] {
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

CB_API cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes) {
  return api([&] { return memory_info(free_bytes, total_bytes); });
}

CB_API cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes,
                                            const void* pointer) {
  return api([&] { return pointer_attributes(attributes, pointer); });
}
