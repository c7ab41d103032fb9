#include "simulator/shims/client/copies.h"
#include "simulator/shims/client/streams.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t fill_bytes(void* dst, size_t pitch, int value, size_t width, size_t height,
                       cudaStream_t stream, DefaultStream null_means, bool async) {
  return api([&] {
    CopyMode mode;
    mode.async = async;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    Fill request;
    request.dst = dst;
    request.value = static_cast<uint8_t>(value);
    request.elements = width;
    request.rows = height;
    request.pitch_bytes = pitch;
    return fill(request, mode);
  });
}

}  // namespace

CB_API cudaError_t cudaMemset(void* dst, int value, size_t bytes) {
  return fill_bytes(dst, 0, value, bytes, 1, nullptr, kLegacy, false);
}
CB_API cudaError_t cudaMemset_ptds(void* dst, int value, size_t bytes) {
  return fill_bytes(dst, 0, value, bytes, 1, nullptr, kPerThread, false);
}

CB_API cudaError_t cudaMemsetAsync(void* dst, int value, size_t bytes, cudaStream_t stream) {
  return fill_bytes(dst, 0, value, bytes, 1, stream, kLegacy, true);
}
CB_API cudaError_t cudaMemsetAsync_ptsz(void* dst, int value, size_t bytes, cudaStream_t stream) {
  return fill_bytes(dst, 0, value, bytes, 1, stream, kPerThread, true);
}

CB_API cudaError_t cudaMemset2D(void* dst, size_t pitch, int value, size_t width, size_t height) {
  return fill_bytes(dst, pitch, value, width, height, nullptr, kLegacy, false);
}
CB_API cudaError_t cudaMemset2D_ptds(void* dst, size_t pitch, int value, size_t width,
                                     size_t height) {
  return fill_bytes(dst, pitch, value, width, height, nullptr, kPerThread, false);
}

CB_API cudaError_t cudaMemset2DAsync(void* dst, size_t pitch, int value, size_t width,
                                     size_t height, cudaStream_t stream) {
  return fill_bytes(dst, pitch, value, width, height, stream, kLegacy, true);
}
CB_API cudaError_t cudaMemset2DAsync_ptsz(void* dst, size_t pitch, int value, size_t width,
                                          size_t height, cudaStream_t stream) {
  return fill_bytes(dst, pitch, value, width, height, stream, kPerThread, true);
}
