// __device__ and __constant__ variables, which host code names by the address of their shadow.

#include "simulator/shims/client/copies.h"
#include "simulator/shims/client/modules.h"
#include "simulator/shims/cudart/api.h"
#include "simulator/shims/cudart/registration.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t locate(const void* symbol, uint64_t* address, uint64_t* bytes) {
  Variable* variable = find_symbol(symbol);
  if (variable == nullptr) return cudaErrorInvalidSymbol;
  return locate_variable(variable, this_thread().device(), address, bytes);
}

enum class Way { kToSymbol, kFromSymbol };

cudaError_t copy_symbol(Way way, const void* symbol, void* dst, const void* src, size_t bytes,
                        size_t offset, cudaMemcpyKind kind, cudaStream_t stream,
                        DefaultStream null_means, bool async) {
  return api([&] {
    cudaMemcpyKind host_kind =
        way == Way::kToSymbol ? cudaMemcpyHostToDevice : cudaMemcpyDeviceToHost;
    if (kind != host_kind && kind != cudaMemcpyDeviceToDevice && kind != cudaMemcpyDefault) {
      return cudaErrorInvalidMemcpyDirection;
    }
    CopyMode mode;
    mode.async = async;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    uint64_t address, size;
    cudaError_t error = locate(symbol, &address, &size);
    if (error != cudaSuccess) return error;
    if (offset > size || bytes > size - offset) return cudaErrorInvalidValue;
    void* inside = reinterpret_cast<void*>(address + offset);
    CopyShape shape;
    shape.width_bytes = bytes;
    return way == Way::kToSymbol ? copy(inside, src, shape, kind, mode)
                                 : copy(dst, inside, shape, kind, mode);
  });
}

}  // namespace

CB_API cudaError_t cudaGetSymbolAddress(void** pointer, const void* symbol) {
  return api([&] {
    if (pointer == nullptr) return cudaErrorInvalidValue;
    uint64_t address, bytes;
    cudaError_t error = locate(symbol, &address, &bytes);
    if (error == cudaSuccess) *pointer = reinterpret_cast<void*>(address);
    return error;
  });
}

CB_API cudaError_t cudaGetSymbolSize(size_t* size, const void* symbol) {
  return api([&] {
    if (size == nullptr) return cudaErrorInvalidValue;
    uint64_t address, bytes;
    cudaError_t error = locate(symbol, &address, &bytes);
    if (error == cudaSuccess) *size = bytes;
    return error;
  });
}

CB_API cudaError_t cudaMemcpyToSymbol(const void* symbol, const void* src, size_t bytes,
                                      size_t offset, cudaMemcpyKind kind) {
  return copy_symbol(Way::kToSymbol, symbol, nullptr, src, bytes, offset, kind, nullptr, kLegacy,
                     false);
}
CB_API cudaError_t cudaMemcpyToSymbol_ptds(const void* symbol, const void* src, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind) {
  return copy_symbol(Way::kToSymbol, symbol, nullptr, src, bytes, offset, kind, nullptr, kPerThread,
                     false);
}

CB_API cudaError_t cudaMemcpyFromSymbol(void* dst, const void* symbol, size_t bytes, size_t offset,
                                        cudaMemcpyKind kind) {
  return copy_symbol(Way::kFromSymbol, symbol, dst, nullptr, bytes, offset, kind, nullptr, kLegacy,
                     false);
}
CB_API cudaError_t cudaMemcpyFromSymbol_ptds(void* dst, const void* symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind) {
  return copy_symbol(Way::kFromSymbol, symbol, dst, nullptr, bytes, offset, kind, nullptr,
                     kPerThread, false);
}

CB_API cudaError_t cudaMemcpyToSymbolAsync(const void* symbol, const void* src, size_t bytes,
                                           size_t offset, cudaMemcpyKind kind,
                                           cudaStream_t stream) {
  return copy_symbol(Way::kToSymbol, symbol, nullptr, src, bytes, offset, kind, stream, kLegacy,
                     true);
}
CB_API cudaError_t cudaMemcpyToSymbolAsync_ptsz(const void* symbol, const void* src, size_t bytes,
                                                size_t offset, cudaMemcpyKind kind,
                                                cudaStream_t stream) {
  return copy_symbol(Way::kToSymbol, symbol, nullptr, src, bytes, offset, kind, stream, kPerThread,
                     true);
}

CB_API cudaError_t cudaMemcpyFromSymbolAsync(void* dst, const void* symbol, size_t bytes,
                                             size_t offset, cudaMemcpyKind kind,
                                             cudaStream_t stream) {
  return copy_symbol(Way::kFromSymbol, symbol, dst, nullptr, bytes, offset, kind, stream, kLegacy,
                     true);
}
CB_API cudaError_t cudaMemcpyFromSymbolAsync_ptsz(void* dst, const void* symbol, size_t bytes,
                                                  size_t offset, cudaMemcpyKind kind,
                                                  cudaStream_t stream) {
  return copy_symbol(Way::kFromSymbol, symbol, dst, nullptr, bytes, offset, kind, stream,
                     kPerThread, true);
}
