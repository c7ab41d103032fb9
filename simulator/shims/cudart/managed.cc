#include "simulator/shims/client/managed.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

}  // namespace

CB_API cudaError_t cudaMallocManaged(void** pointer, size_t bytes, unsigned flags) {
  return api([&] { return allocate_managed(pointer, bytes, flags); });
}

CB_API cudaError_t cudaMemPrefetchAsync(const void* pointer, size_t bytes, cudaMemLocation location,
                                        unsigned flags, cudaStream_t stream) {
  return api([&] {
    return prefetch_managed(pointer, bytes, location.type, location.id, flags, stream, kLegacy);
  });
}
CB_API cudaError_t cudaMemPrefetchAsync_ptsz(const void* pointer, size_t bytes,
                                             cudaMemLocation location, unsigned flags,
                                             cudaStream_t stream) {
  return api([&] {
    return prefetch_managed(pointer, bytes, location.type, location.id, flags, stream, kPerThread);
  });
}

CB_API cudaError_t cudaMemAdvise(const void* pointer, size_t bytes, cudaMemoryAdvise advice,
                                 cudaMemLocation location) {
  return api([&] { return advise_managed(pointer, bytes, advice, location.type, location.id); });
}

CB_API cudaError_t cudaMemRangeGetAttribute(void* data, size_t data_bytes,
                                            cudaMemRangeAttribute attribute, const void* pointer,
                                            size_t bytes) {
  return api([&] { return managed_range_attribute(data, data_bytes, attribute, pointer, bytes); });
}

CB_API cudaError_t cudaMemRangeGetAttributes(void** data, size_t* data_bytes,
                                             cudaMemRangeAttribute* attributes, size_t count,
                                             const void* pointer, size_t bytes) {
  return api([&] {
    if (data == nullptr || data_bytes == nullptr || attributes == nullptr || count == 0) {
      return cudaErrorInvalidValue;
    }
    cudaError_t error = cudaSuccess;
    for (size_t at = 0; at < count && error == cudaSuccess; ++at) {
      error = managed_range_attribute(data[at], data_bytes[at], attributes[at], pointer, bytes);
    }
    return error;
  });
}

CB_API cudaError_t cudaStreamAttachMemAsync(cudaStream_t stream, void* pointer, size_t bytes,
                                            unsigned flags) {
  return api([&] { return attach_managed(stream, pointer, bytes, flags, kLegacy); });
}
CB_API cudaError_t cudaStreamAttachMemAsync_ptsz(cudaStream_t stream, void* pointer, size_t bytes,
                                                 unsigned flags) {
  return api([&] { return attach_managed(stream, pointer, bytes, flags, kPerThread); });
}
