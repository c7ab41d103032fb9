// Copies. The driver's functions give the direction in their names; cuMemcpy finds it from the
// addresses.

#include "simulator/shims/client/copies.h"
#include "simulator/shims/client/streams.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

CUresult plain(void* dst, const void* src, size_t bytes, cudaMemcpyKind kind, CUstream stream,
               DefaultStream null_means, bool async, bool peer = false) {
  return context_call([&] {
    CopyMode mode;
    mode.async = async || peer;
    mode.peer = peer;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    CopyShape shape;
    shape.width_bytes = bytes;
    return copy(dst, src, shape, kind, mode);
  });
}

CUresult between(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src, CUcontext src_context,
                 size_t bytes, CUstream stream, DefaultStream null_means) {
  if (device_of(dst_context) < 0 || device_of(src_context) < 0) return CUDA_ERROR_INVALID_CONTEXT;
  return plain(to_pointer(dst), to_pointer(src), bytes, cudaMemcpyDeviceToDevice, stream,
               null_means, true, true);
}

/// The first byte of one side of a 2D copy; nullptr for arrays.
char* first_byte(CUmemorytype type, const void* host, CUdeviceptr device, size_t x, size_t y,
                 size_t pitch) {
  char* base = nullptr;
  if (type == CU_MEMORYTYPE_HOST) base = static_cast<char*>(const_cast<void*>(host));
  if (type == CU_MEMORYTYPE_DEVICE || type == CU_MEMORYTYPE_UNIFIED) {
    base = static_cast<char*>(to_pointer(device));
  }
  return base == nullptr ? nullptr : base + y * pitch + x;
}

CUresult rectangle(const CUDA_MEMCPY2D* params, CUstream stream, DefaultStream null_means,
                   bool async) {
  return context_call([&] {
    if (params == nullptr) return cudaErrorInvalidValue;
    if (params->srcMemoryType == CU_MEMORYTYPE_ARRAY ||
        params->dstMemoryType == CU_MEMORYTYPE_ARRAY) {
      return CB_REFUSE("cuMemcpy2D with a CUDA array");
    }
    CopyMode mode;
    mode.async = async;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    CopyShape shape;
    shape.width_bytes = params->WidthInBytes;
    shape.rows = params->Height;
    // A pitch of 0 means that rows follow each other.
    shape.src_pitch = params->srcPitch == 0 ? shape.width_bytes : params->srcPitch;
    shape.dst_pitch = params->dstPitch == 0 ? shape.width_bytes : params->dstPitch;
    if (shape.width_bytes > shape.src_pitch || shape.width_bytes > shape.dst_pitch) {
      return cudaErrorInvalidValue;
    }
    char* src = first_byte(params->srcMemoryType, params->srcHost, params->srcDevice,
                           params->srcXInBytes, params->srcY, shape.src_pitch);
    char* dst = first_byte(params->dstMemoryType, params->dstHost, params->dstDevice,
                           params->dstXInBytes, params->dstY, shape.dst_pitch);
    return copy(dst, src, shape, cudaMemcpyDefault, mode);
  });
}

constexpr auto kToDevice = cudaMemcpyHostToDevice;
constexpr auto kToHost = cudaMemcpyDeviceToHost;
constexpr auto kInside = cudaMemcpyDeviceToDevice;

}  // namespace

CB_DRIVER CUresult cuMemcpy(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return plain(to_pointer(dst), to_pointer(src), bytes, cudaMemcpyDefault, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemcpy_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return plain(to_pointer(dst), to_pointer(src), bytes, cudaMemcpyDefault, nullptr, kPerThread,
               false);
}
CB_DRIVER CUresult cuMemcpyAsync(CUdeviceptr dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return plain(to_pointer(dst), to_pointer(src), bytes, cudaMemcpyDefault, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemcpyAsync_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                      CUstream stream) {
  return plain(to_pointer(dst), to_pointer(src), bytes, cudaMemcpyDefault, stream, kPerThread,
               true);
}

CB_DRIVER CUresult cuMemcpyHtoD_v2(CUdeviceptr dst, const void* src, size_t bytes) {
  return plain(to_pointer(dst), src, bytes, kToDevice, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemcpyHtoD_v2_ptds(CUdeviceptr dst, const void* src, size_t bytes) {
  return plain(to_pointer(dst), src, bytes, kToDevice, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void* src, size_t bytes,
                                        CUstream stream) {
  return plain(to_pointer(dst), src, bytes, kToDevice, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemcpyHtoDAsync_v2_ptsz(CUdeviceptr dst, const void* src, size_t bytes,
                                             CUstream stream) {
  return plain(to_pointer(dst), src, bytes, kToDevice, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemcpyDtoH_v2(void* dst, CUdeviceptr src, size_t bytes) {
  return plain(dst, to_pointer(src), bytes, kToHost, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemcpyDtoH_v2_ptds(void* dst, CUdeviceptr src, size_t bytes) {
  return plain(dst, to_pointer(src), bytes, kToHost, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemcpyDtoHAsync_v2(void* dst, CUdeviceptr src, size_t bytes, CUstream stream) {
  return plain(dst, to_pointer(src), bytes, kToHost, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemcpyDtoHAsync_v2_ptsz(void* dst, CUdeviceptr src, size_t bytes,
                                             CUstream stream) {
  return plain(dst, to_pointer(src), bytes, kToHost, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemcpyDtoD_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return plain(to_pointer(dst), to_pointer(src), bytes, kInside, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemcpyDtoD_v2_ptds(CUdeviceptr dst, CUdeviceptr src, size_t bytes) {
  return plain(to_pointer(dst), to_pointer(src), bytes, kInside, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                        CUstream stream) {
  return plain(to_pointer(dst), to_pointer(src), bytes, kInside, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemcpyDtoDAsync_v2_ptsz(CUdeviceptr dst, CUdeviceptr src, size_t bytes,
                                             CUstream stream) {
  return plain(to_pointer(dst), to_pointer(src), bytes, kInside, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemcpyPeer(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                CUcontext src_context, size_t bytes) {
  return between(dst, dst_context, src, src_context, bytes, nullptr, kLegacy);
}
CB_DRIVER CUresult cuMemcpyPeer_ptds(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                     CUcontext src_context, size_t bytes) {
  return between(dst, dst_context, src, src_context, bytes, nullptr, kPerThread);
}
CB_DRIVER CUresult cuMemcpyPeerAsync(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                     CUcontext src_context, size_t bytes, CUstream stream) {
  return between(dst, dst_context, src, src_context, bytes, stream, kLegacy);
}
CB_DRIVER CUresult cuMemcpyPeerAsync_ptsz(CUdeviceptr dst, CUcontext dst_context, CUdeviceptr src,
                                          CUcontext src_context, size_t bytes, CUstream stream) {
  return between(dst, dst_context, src, src_context, bytes, stream, kPerThread);
}

CB_DRIVER CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* params) {
  return rectangle(params, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemcpy2D_v2_ptds(const CUDA_MEMCPY2D* params) {
  return rectangle(params, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* params) {
  return rectangle(params, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemcpy2DUnaligned_v2_ptds(const CUDA_MEMCPY2D* params) {
  return rectangle(params, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* params, CUstream stream) {
  return rectangle(params, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemcpy2DAsync_v2_ptsz(const CUDA_MEMCPY2D* params, CUstream stream) {
  return rectangle(params, stream, kPerThread, true);
}
