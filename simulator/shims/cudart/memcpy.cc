// cudaMemcpy and its relatives. Each exists for the legacy default stream and, with the suffix
// _ptds or _ptsz, for programs compiled with --default-stream per-thread.

#include "simulator/shims/client/copies.h"
#include "simulator/shims/client/streams.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t plain(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                  cudaStream_t stream, DefaultStream null_means, bool async) {
  return api([&] {
    CopyMode mode;
    mode.async = async;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    CopyShape shape;
    shape.width_bytes = bytes;
    return copy(dst, src, shape, kind, mode);
  });
}

cudaError_t rectangle(void* dst, size_t dst_pitch, const void* src, size_t src_pitch, size_t width,
                      size_t height, cudaMemcpyKind kind, cudaStream_t stream,
                      DefaultStream null_means, bool async) {
  return api([&] {
    constexpr size_t kMaxPitch = 0x7fffffff;
    CopyMode mode;
    mode.async = async;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    if (width > dst_pitch || width > src_pitch || dst_pitch > kMaxPitch || src_pitch > kMaxPitch) {
      return cudaErrorInvalidPitchValue;
    }
    CopyShape shape;
    shape.width_bytes = width;
    shape.rows = height;
    shape.dst_pitch = dst_pitch;
    shape.src_pitch = src_pitch;
    return copy(dst, src, shape, kind, mode);
  });
}

/// Between devices, whether or not peer access is enabled. Neither form waits for the copy.
cudaError_t between_devices(void* dst, int dst_device, const void* src, int src_device,
                            size_t bytes, cudaStream_t stream) {
  return api([&] {
    if (!is_device(dst_device) || !is_device(src_device)) return cudaErrorInvalidDevice;
    CopyMode mode;
    mode.async = true;
    mode.peer = true;
    if (!find_stream(stream, kLegacy, &mode.stream)) return cudaErrorInvalidResourceHandle;
    CopyShape shape;
    shape.width_bytes = bytes;
    return copy(dst, src, shape, cudaMemcpyDeviceToDevice, mode);
  });
}

}  // namespace

CB_API cudaError_t cudaMemcpy(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  return plain(dst, src, bytes, kind, nullptr, kLegacy, false);
}
CB_API cudaError_t cudaMemcpy_ptds(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind) {
  return plain(dst, src, bytes, kind, nullptr, kPerThread, false);
}

CB_API cudaError_t cudaMemcpyAsync(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind,
                                   cudaStream_t stream) {
  return plain(dst, src, bytes, kind, stream, kLegacy, true);
}
CB_API cudaError_t cudaMemcpyAsync_ptsz(void* dst, const void* src, size_t bytes,
                                        cudaMemcpyKind kind, cudaStream_t stream) {
  return plain(dst, src, bytes, kind, stream, kPerThread, true);
}

CB_API cudaError_t cudaMemcpy2D(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                size_t width, size_t height, cudaMemcpyKind kind) {
  return rectangle(dst, dst_pitch, src, src_pitch, width, height, kind, nullptr, kLegacy, false);
}
CB_API cudaError_t cudaMemcpy2D_ptds(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind) {
  return rectangle(dst, dst_pitch, src, src_pitch, width, height, kind, nullptr, kPerThread, false);
}

CB_API cudaError_t cudaMemcpy2DAsync(void* dst, size_t dst_pitch, const void* src, size_t src_pitch,
                                     size_t width, size_t height, cudaMemcpyKind kind,
                                     cudaStream_t stream) {
  return rectangle(dst, dst_pitch, src, src_pitch, width, height, kind, stream, kLegacy, true);
}
CB_API cudaError_t cudaMemcpy2DAsync_ptsz(void* dst, size_t dst_pitch, const void* src,
                                          size_t src_pitch, size_t width, size_t height,
                                          cudaMemcpyKind kind, cudaStream_t stream) {
  return rectangle(dst, dst_pitch, src, src_pitch, width, height, kind, stream, kPerThread, true);
}

CB_API cudaError_t cudaMemcpyPeer(void* dst, int dst_device, const void* src, int src_device,
                                  size_t bytes) {
  return between_devices(dst, dst_device, src, src_device, bytes, nullptr);
}

CB_API cudaError_t cudaMemcpyPeerAsync(void* dst, int dst_device, const void* src, int src_device,
                                       size_t bytes, cudaStream_t stream) {
  return between_devices(dst, dst_device, src, src_device, bytes, stream);
}
