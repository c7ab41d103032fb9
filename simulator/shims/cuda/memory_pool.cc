// Stream-ordered memory: see client/memory_pools.h.

#include "simulator/shims/client/memory_pools.h"

#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

void** as_pointers(CUdeviceptr* address) { return reinterpret_cast<void**>(address); }

CUresult pool_at(CUmemoryPool* pool, const CUmemLocation* location, CUmemAllocationType type,
                 cudaError_t (*get)(cudaMemPool_t*, int)) {
  return context_call([&] {
    if (location == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_pool_place(location->type, location->id, type);
    return error == cudaSuccess ? get(pool, location->id) : error;
  });
}

}  // namespace

CB_DRIVER CUresult cuMemAllocAsync(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return context_call(
      [&] { return allocate_async(as_pointers(pointer), bytes, nullptr, stream, kLegacy); });
}
CB_DRIVER CUresult cuMemAllocAsync_ptsz(CUdeviceptr* pointer, size_t bytes, CUstream stream) {
  return context_call(
      [&] { return allocate_async(as_pointers(pointer), bytes, nullptr, stream, kPerThread); });
}

CB_DRIVER CUresult cuMemAllocFromPoolAsync(CUdeviceptr* pointer, size_t bytes, CUmemoryPool pool,
                                           CUstream stream) {
  return context_call([&] {
    if (pool == nullptr) return cudaErrorInvalidValue;
    return allocate_async(as_pointers(pointer), bytes, pool, stream, kLegacy);
  });
}
CB_DRIVER CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr* pointer, size_t bytes,
                                                CUmemoryPool pool, CUstream stream) {
  return context_call([&] {
    if (pool == nullptr) return cudaErrorInvalidValue;
    return allocate_async(as_pointers(pointer), bytes, pool, stream, kPerThread);
  });
}

CB_DRIVER CUresult cuMemFreeAsync(CUdeviceptr pointer, CUstream stream) {
  return context_call([&] { return free_async(to_pointer(pointer), stream, kLegacy); });
}
CB_DRIVER CUresult cuMemFreeAsync_ptsz(CUdeviceptr pointer, CUstream stream) {
  return context_call([&] { return free_async(to_pointer(pointer), stream, kPerThread); });
}

CB_DRIVER CUresult cuMemPoolCreate(CUmemoryPool* pool, const CUmemPoolProps* props) {
  return context_call([&] {
    if (props == nullptr) return cudaErrorInvalidValue;
    PoolProperties properties;
    properties.allocation_type = props->allocType;
    properties.handle_types = props->handleTypes;
    properties.location_type = props->location.type;
    properties.location = props->location.id;
    properties.max_bytes = props->maxSize;
    properties.usage = props->usage;
    return create_pool(pool, properties);
  });
}

CB_DRIVER CUresult cuMemPoolDestroy(CUmemoryPool pool) {
  return context_call([&] { return destroy_pool(pool); });
}

CB_DRIVER CUresult cuMemPoolTrimTo(CUmemoryPool pool, size_t bytes_to_keep) {
  return context_call([&] { return trim_pool(pool, bytes_to_keep); });
}

CB_DRIVER CUresult cuMemPoolSetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                         void* value) {
  return context_call([&] { return set_pool_attribute(pool, attribute, value); });
}

CB_DRIVER CUresult cuMemPoolGetAttribute(CUmemoryPool pool, CUmemPool_attribute attribute,
                                         void* value) {
  return context_call([&] { return get_pool_attribute(pool, attribute, value); });
}

CB_DRIVER CUresult cuMemPoolSetAccess(CUmemoryPool pool, const CUmemAccessDesc* accesses,
                                      size_t count) {
  return context_call([&] {
    if (accesses == nullptr && count > 0) return cudaErrorInvalidValue;
    cudaError_t error = cudaSuccess;
    for (size_t at = 0; at < count && error == cudaSuccess; ++at) {
      const CUmemAccessDesc& one = accesses[at];
      error = set_pool_access(pool, one.location.type, one.location.id, one.flags);
    }
    return error;
  });
}

CB_DRIVER CUresult cuMemPoolGetAccess(CUmemAccess_flags* flags, CUmemoryPool pool,
                                      CUmemLocation* location) {
  return context_call([&] {
    if (flags == nullptr || location == nullptr) return cudaErrorInvalidValue;
    uint64_t found = 0;
    cudaError_t error = get_pool_access(pool, location->type, location->id, &found);
    if (error == cudaSuccess) *flags = static_cast<CUmemAccess_flags>(found);
    return error;
  });
}

CB_DRIVER CUresult cuMemPoolExportToShareableHandle(void* shareable, CUmemoryPool pool,
                                                    CUmemAllocationHandleType type,
                                                    unsigned long long flags) {
  return context_call([&] { return export_pool(shareable, pool, type, flags); });
}

CB_DRIVER CUresult cuMemPoolImportFromShareableHandle(CUmemoryPool* pool, void* shareable,
                                                      CUmemAllocationHandleType type,
                                                      unsigned long long flags) {
  return context_call([&] { return import_pool(pool, shareable, type, flags); });
}

CB_DRIVER CUresult cuMemPoolExportPointer(CUmemPoolPtrExportData* data, CUdeviceptr pointer) {
  return context_call([&] { return export_pooled(data, to_pointer(pointer)); });
}

CB_DRIVER CUresult cuMemPoolImportPointer(CUdeviceptr* pointer, CUmemoryPool pool,
                                          CUmemPoolPtrExportData* data) {
  return context_call([&] { return import_pooled(as_pointers(pointer), pool, data); });
}

CB_DRIVER CUresult cuDeviceGetDefaultMemPool(CUmemoryPool* pool, CUdevice device) {
  return context_call([&] { return default_pool(pool, device); });
}

CB_DRIVER CUresult cuDeviceGetMemPool(CUmemoryPool* pool, CUdevice device) {
  return context_call([&] { return current_pool(pool, device); });
}

CB_DRIVER CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool) {
  return context_call([&] { return set_current_pool(device, pool); });
}

CB_DRIVER CUresult cuMemGetDefaultMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                          CUmemAllocationType type) {
  return pool_at(pool, location, type, default_pool);
}

CB_DRIVER CUresult cuMemGetMemPool(CUmemoryPool* pool, CUmemLocation* location,
                                   CUmemAllocationType type) {
  return pool_at(pool, location, type, current_pool);
}

CB_DRIVER CUresult cuMemSetMemPool(CUmemLocation* location, CUmemAllocationType type,
                                   CUmemoryPool pool) {
  return context_call([&] {
    if (location == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_pool_place(location->type, location->id, type);
    return error == cudaSuccess ? set_current_pool(location->id, pool) : error;
  });
}
