// Stream-ordered memory: see client/memory_pools.h.

#include "simulator/shims/client/memory_pools.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t pool_at(cudaMemPool_t* pool, const cudaMemLocation* location,
                    cudaMemAllocationType type, cudaError_t (*get)(cudaMemPool_t*, int)) {
  return api([&] {
    if (location == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_pool_place(location->type, location->id, type);
    return error == cudaSuccess ? get(pool, location->id) : error;
  });
}

}  // namespace

CB_API cudaError_t cudaMallocAsync(void** pointer, size_t bytes, cudaStream_t stream) {
  return api([&] { return allocate_async(pointer, bytes, nullptr, stream, kLegacy); });
}
CB_API cudaError_t cudaMallocAsync_ptsz(void** pointer, size_t bytes, cudaStream_t stream) {
  return api([&] { return allocate_async(pointer, bytes, nullptr, stream, kPerThread); });
}

CB_API cudaError_t cudaMallocFromPoolAsync(void** pointer, size_t bytes, cudaMemPool_t pool,
                                           cudaStream_t stream) {
  return api([&] {
    if (pool == nullptr) return cudaErrorInvalidValue;
    return allocate_async(pointer, bytes, pool, stream, kLegacy);
  });
}
CB_API cudaError_t cudaMallocFromPoolAsync_ptsz(void** pointer, size_t bytes, cudaMemPool_t pool,
                                                cudaStream_t stream) {
  return api([&] {
    if (pool == nullptr) return cudaErrorInvalidValue;
    return allocate_async(pointer, bytes, pool, stream, kPerThread);
  });
}

CB_API cudaError_t cudaFreeAsync(void* pointer, cudaStream_t stream) {
  return api([&] { return free_async(pointer, stream, kLegacy); });
}
CB_API cudaError_t cudaFreeAsync_ptsz(void* pointer, cudaStream_t stream) {
  return api([&] { return free_async(pointer, stream, kPerThread); });
}

CB_API cudaError_t cudaMemPoolCreate(cudaMemPool_t* pool, const cudaMemPoolProps* props) {
  return api([&] {
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

CB_API cudaError_t cudaMemPoolDestroy(cudaMemPool_t pool) {
  return api([&] { return destroy_pool(pool); });
}

CB_API cudaError_t cudaMemPoolTrimTo(cudaMemPool_t pool, size_t bytes_to_keep) {
  return api([&] { return trim_pool(pool, bytes_to_keep); });
}

CB_API cudaError_t cudaMemPoolSetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                           void* value) {
  return api([&] { return set_pool_attribute(pool, attribute, value); });
}

CB_API cudaError_t cudaMemPoolGetAttribute(cudaMemPool_t pool, cudaMemPoolAttr attribute,
                                           void* value) {
  return api([&] { return get_pool_attribute(pool, attribute, value); });
}

CB_API cudaError_t cudaMemPoolSetAccess(cudaMemPool_t pool, const cudaMemAccessDesc* accesses,
                                        size_t count) {
  return api([&] {
    if (accesses == nullptr && count > 0) return cudaErrorInvalidValue;
    cudaError_t error = cudaSuccess;
    for (size_t at = 0; at < count && error == cudaSuccess; ++at) {
      const cudaMemAccessDesc& one = accesses[at];
      error = set_pool_access(pool, one.location.type, one.location.id, one.flags);
    }
    return error;
  });
}

CB_API cudaError_t cudaMemPoolGetAccess(cudaMemAccessFlags* flags, cudaMemPool_t pool,
                                        cudaMemLocation* location) {
  return api([&] {
    if (flags == nullptr || location == nullptr) return cudaErrorInvalidValue;
    uint64_t found = 0;
    cudaError_t error = get_pool_access(pool, location->type, location->id, &found);
    if (error == cudaSuccess) *flags = static_cast<cudaMemAccessFlags>(found);
    return error;
  });
}

CB_API cudaError_t cudaMemPoolExportToShareableHandle(void* shareable, cudaMemPool_t pool,
                                                      cudaMemAllocationHandleType type,
                                                      unsigned flags) {
  return api([&] { return export_pool(shareable, pool, type, flags); });
}

CB_API cudaError_t cudaMemPoolImportFromShareableHandle(cudaMemPool_t* pool, void* shareable,
                                                        cudaMemAllocationHandleType type,
                                                        unsigned flags) {
  return api([&] { return import_pool(pool, shareable, type, flags); });
}

CB_API cudaError_t cudaMemPoolExportPointer(cudaMemPoolPtrExportData* data, void* pointer) {
  return api([&] { return export_pooled(data, pointer); });
}

CB_API cudaError_t cudaMemPoolImportPointer(void** pointer, cudaMemPool_t pool,
                                            cudaMemPoolPtrExportData* data) {
  return api([&] { return import_pooled(pointer, pool, data); });
}

CB_API cudaError_t cudaDeviceGetDefaultMemPool(cudaMemPool_t* pool, int device) {
  return api([&] { return default_pool(pool, device); });
}

CB_API cudaError_t cudaDeviceGetMemPool(cudaMemPool_t* pool, int device) {
  return api([&] { return current_pool(pool, device); });
}

CB_API cudaError_t cudaDeviceSetMemPool(int device, cudaMemPool_t pool) {
  return api([&] { return set_current_pool(device, pool); });
}

CB_API cudaError_t cudaMemGetDefaultMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                            cudaMemAllocationType type) {
  return pool_at(pool, location, type, default_pool);
}

CB_API cudaError_t cudaMemGetMemPool(cudaMemPool_t* pool, cudaMemLocation* location,
                                     cudaMemAllocationType type) {
  return pool_at(pool, location, type, current_pool);
}

CB_API cudaError_t cudaMemSetMemPool(cudaMemLocation* location, cudaMemAllocationType type,
                                     cudaMemPool_t pool) {
  return api([&] {
    if (location == nullptr) return cudaErrorInvalidValue;
    cudaError_t error = check_pool_place(location->type, location->id, type);
    return error == cudaSuccess ? set_current_pool(location->id, pool) : error;
  });
}
