#include "simulator/shims/client/managed.h"

#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

CUresult prefetch(CUdeviceptr address, size_t bytes, CUmemLocation location, unsigned flags,
                  CUstream stream, DefaultStream null_means) {
  return context_call([&] {
    return prefetch_managed(to_pointer(address), bytes, location.type, location.id, flags, stream,
                            null_means);
  });
}

}  // namespace

CB_DRIVER CUresult cuMemAllocManaged(CUdeviceptr* address, size_t bytes, unsigned flags) {
  return context_call(
      [&] { return allocate_managed(reinterpret_cast<void**>(address), bytes, flags); });
}

CB_DRIVER CUresult cuMemPrefetchAsync_v2(CUdeviceptr address, size_t bytes, CUmemLocation location,
                                         unsigned flags, CUstream stream) {
  return prefetch(address, bytes, location, flags, stream, kLegacy);
}
CB_DRIVER CUresult cuMemPrefetchAsync_v2_ptsz(CUdeviceptr address, size_t bytes,
                                              CUmemLocation location, unsigned flags,
                                              CUstream stream) {
  return prefetch(address, bytes, location, flags, stream, kPerThread);
}

CB_DRIVER CUresult cuMemAdvise_v2(CUdeviceptr address, size_t bytes, CUmem_advise advice,
                                  CUmemLocation location) {
  return context_call([&] {
    return advise_managed(to_pointer(address), bytes, advice, location.type, location.id);
  });
}

CB_DRIVER CUresult cuMemRangeGetAttribute(void* data, size_t data_bytes,
                                          CUmem_range_attribute attribute, CUdeviceptr address,
                                          size_t bytes) {
  return context_call([&] {
    return managed_range_attribute(data, data_bytes, attribute, to_pointer(address), bytes);
  });
}

CB_DRIVER CUresult cuMemRangeGetAttributes(void** data, size_t* data_bytes,
                                           CUmem_range_attribute* attributes, size_t count,
                                           CUdeviceptr address, size_t bytes) {
  return context_call([&] {
    if (data == nullptr || data_bytes == nullptr || attributes == nullptr || count == 0) {
      return cudaErrorInvalidValue;
    }
    cudaError_t error = cudaSuccess;
    for (size_t at = 0; at < count && error == cudaSuccess; ++at) {
      error = managed_range_attribute(data[at], data_bytes[at], attributes[at], to_pointer(address),
                                      bytes);
    }
    return error;
  });
}

CB_DRIVER CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr address, size_t bytes,
                                          unsigned flags) {
  return context_call(
      [&] { return attach_managed(stream, to_pointer(address), bytes, flags, kLegacy); });
}
CB_DRIVER CUresult cuStreamAttachMemAsync_ptsz(CUstream stream, CUdeviceptr address, size_t bytes,
                                               unsigned flags) {
  return context_call(
      [&] { return attach_managed(stream, to_pointer(address), bytes, flags, kPerThread); });
}
