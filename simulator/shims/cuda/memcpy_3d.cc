#include "simulator/shims/client/copies_3d.h"
#include "simulator/shims/client/copy_batch.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

void* base_of(CUmemorytype type, const void* host, CUdeviceptr device) {
  switch (type) {
    case CU_MEMORYTYPE_HOST:
      return const_cast<void*>(host);
    case CU_MEMORYTYPE_DEVICE:
    case CU_MEMORYTYPE_UNIFIED:
      return to_pointer(device);
    default:
      return nullptr;
  }
}

/// `Params` is CUDA_MEMCPY3D or CUDA_MEMCPY3D_PEER.
template <class Params>
cudaError_t copy_params(const Params& params, const CopyMode& mode) {
  if (params.srcMemoryType == CU_MEMORYTYPE_ARRAY || params.dstMemoryType == CU_MEMORYTYPE_ARRAY) {
    return CB_REFUSE("cuMemcpy3D with a CUDA array");
  }
  Volume volume = {params.WidthInBytes, params.Height, params.Depth};
  // A pitch or height of 0 means that rows or slices follow each other.
  Slices dst, src;
  dst.pitch = params.dstPitch == 0 ? volume.width_bytes : params.dstPitch;
  src.pitch = params.srcPitch == 0 ? volume.width_bytes : params.srcPitch;
  dst.rows = params.dstHeight == 0 ? volume.height : params.dstHeight;
  src.rows = params.srcHeight == 0 ? volume.height : params.srcHeight;
  void* to = base_of(params.dstMemoryType, params.dstHost, params.dstDevice);
  void* from = base_of(params.srcMemoryType, params.srcHost, params.srcDevice);
  bool located =
      locate(to, dst.pitch, dst.rows, params.dstXInBytes, params.dstY, params.dstZ, &dst.base) &&
      locate(from, src.pitch, src.rows, params.srcXInBytes, params.srcY, params.srcZ, &src.base);
  if (!located || to == nullptr || from == nullptr) return cudaErrorInvalidValue;
  return copy_volume(dst, src, volume, cudaMemcpyDefault, mode);
}

CUresult volume(const CUDA_MEMCPY3D* params, CUstream stream, DefaultStream null_means,
                bool async) {
  return context_call([&] {
    CopyMode mode;
    mode.async = async;
    if (params == nullptr) return cudaErrorInvalidValue;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    return copy_params(*params, mode);
  });
}

CUresult between(const CUDA_MEMCPY3D_PEER* params, CUstream stream, DefaultStream null_means) {
  return context_call([&] {
    CopyMode mode;
    mode.async = true;
    mode.peer = true;
    if (params == nullptr) return cudaErrorInvalidValue;
    if (context_from(params->srcContext) < 0 || context_from(params->dstContext) < 0) {
      return cudaErrorDeviceUninitialized;
    }
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    return copy_params(*params, mode);
  });
}

static_assert(sizeof(CUmemcpyAttributes) == sizeof(cudaMemcpyAttributes));

CUresult copies(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes, size_t count,
                CUmemcpyAttributes* attributes, size_t* first_of, size_t num_attributes,
                CUstream stream, DefaultStream null_means) {
  CopyBatch batch = {reinterpret_cast<void**>(dsts),
                     reinterpret_cast<const void**>(srcs),
                     sizes,
                     count,
                     reinterpret_cast<const cudaMemcpyAttributes*>(attributes),
                     first_of,
                     num_attributes};
  return context_call([&] { return copy_batch(batch, stream, null_means); });
}

}  // namespace

CB_DRIVER CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* params) {
  return volume(params, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemcpy3D_v2_ptds(const CUDA_MEMCPY3D* params) {
  return volume(params, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* params, CUstream stream) {
  return volume(params, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemcpy3DAsync_v2_ptsz(const CUDA_MEMCPY3D* params, CUstream stream) {
  return volume(params, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* params) {
  return between(params, nullptr, kLegacy);
}
CB_DRIVER CUresult cuMemcpy3DPeer_ptds(const CUDA_MEMCPY3D_PEER* params) {
  return between(params, nullptr, kPerThread);
}
CB_DRIVER CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* params, CUstream stream) {
  return between(params, stream, kLegacy);
}
CB_DRIVER CUresult cuMemcpy3DPeerAsync_ptsz(const CUDA_MEMCPY3D_PEER* params, CUstream stream) {
  return between(params, stream, kPerThread);
}

CB_DRIVER CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes,
                                         size_t count, CUmemcpyAttributes* attributes,
                                         size_t* first_of, size_t num_attributes, CUstream stream) {
  return copies(dsts, srcs, sizes, count, attributes, first_of, num_attributes, stream, kLegacy);
}
CB_DRIVER CUresult cuMemcpyBatchAsync_v2_ptsz(CUdeviceptr* dsts, CUdeviceptr* srcs, size_t* sizes,
                                              size_t count, CUmemcpyAttributes* attributes,
                                              size_t* first_of, size_t num_attributes,
                                              CUstream stream) {
  return copies(dsts, srcs, sizes, count, attributes, first_of, num_attributes, stream, kPerThread);
}
