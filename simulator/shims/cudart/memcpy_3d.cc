// Three-dimensional copies and fills, and batches of copies.

#include "simulator/shims/client/copies_3d.h"
#include "simulator/shims/client/copy_batch.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t slices_of(const cudaPitchedPtr& memory, const cudaPos& position, Slices* side) {
  side->pitch = memory.pitch;
  side->rows = memory.ysize;
  if (memory.ptr == nullptr) return cudaErrorInvalidValue;
  bool located = locate(memory.ptr, memory.pitch, memory.ysize, position.x, position.y, position.z,
                        &side->base);
  return located ? cudaSuccess : cudaErrorInvalidValue;
}

/// `Parms` is cudaMemcpy3DParms or cudaMemcpy3DPeerParms.
template <class Parms>
cudaError_t copy_parms(const Parms& parms, cudaMemcpyKind kind, const CopyMode& mode) {
  if (parms.srcArray != nullptr || parms.dstArray != nullptr) {
    return CB_REFUSE("cudaMemcpy3D with a CUDA array");
  }
  Slices dst, src;
  cudaError_t error = slices_of(parms.dstPtr, parms.dstPos, &dst);
  if (error == cudaSuccess) error = slices_of(parms.srcPtr, parms.srcPos, &src);
  if (error != cudaSuccess) return error;
  Volume volume = {parms.extent.width, parms.extent.height, parms.extent.depth};
  return copy_volume(dst, src, volume, kind, mode);
}

cudaError_t volume(const cudaMemcpy3DParms* parms, cudaStream_t stream, DefaultStream null_means,
                   bool async) {
  return api([&] {
    CopyMode mode;
    mode.async = async;
    if (parms == nullptr) return cudaErrorInvalidValue;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    return copy_parms(*parms, parms->kind, mode);
  });
}

cudaError_t between(const cudaMemcpy3DPeerParms* parms, cudaStream_t stream,
                    DefaultStream null_means) {
  return api([&] {
    CopyMode mode;
    mode.async = true;
    mode.peer = true;
    if (parms == nullptr) return cudaErrorInvalidValue;
    if (!is_device(parms->srcDevice) || !is_device(parms->dstDevice)) {
      return cudaErrorInvalidDevice;
    }
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    return copy_parms(*parms, cudaMemcpyDeviceToDevice, mode);
  });
}

cudaError_t set(const cudaPitchedPtr& memory, int value, const cudaExtent& extent,
                cudaStream_t stream, DefaultStream null_means, bool async) {
  return api([&] {
    CopyMode mode;
    mode.async = async;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    Slices dst;
    dst.base = memory.ptr;
    dst.pitch = memory.pitch;
    dst.rows = memory.ysize;
    return fill_volume(dst, value, {extent.width, extent.height, extent.depth}, mode);
  });
}

}  // namespace

CB_API cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* parms) {
  return volume(parms, nullptr, kLegacy, false);
}
CB_API cudaError_t cudaMemcpy3D_ptds(const cudaMemcpy3DParms* parms) {
  return volume(parms, nullptr, kPerThread, false);
}
CB_API cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* parms, cudaStream_t stream) {
  return volume(parms, stream, kLegacy, true);
}
CB_API cudaError_t cudaMemcpy3DAsync_ptsz(const cudaMemcpy3DParms* parms, cudaStream_t stream) {
  return volume(parms, stream, kPerThread, true);
}

CB_API cudaError_t cudaMemcpy3DPeer(const cudaMemcpy3DPeerParms* parms) {
  return between(parms, nullptr, kLegacy);
}
CB_API cudaError_t cudaMemcpy3DPeer_ptds(const cudaMemcpy3DPeerParms* parms) {
  return between(parms, nullptr, kPerThread);
}
CB_API cudaError_t cudaMemcpy3DPeerAsync(const cudaMemcpy3DPeerParms* parms, cudaStream_t stream) {
  return between(parms, stream, kLegacy);
}
CB_API cudaError_t cudaMemcpy3DPeerAsync_ptsz(const cudaMemcpy3DPeerParms* parms,
                                              cudaStream_t stream) {
  return between(parms, stream, kPerThread);
}

CB_API cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return set(memory, value, extent, nullptr, kLegacy, false);
}
CB_API cudaError_t cudaMemset3D_ptds(cudaPitchedPtr memory, int value, cudaExtent extent) {
  return set(memory, value, extent, nullptr, kPerThread, false);
}
CB_API cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent,
                                     cudaStream_t stream) {
  return set(memory, value, extent, stream, kLegacy, true);
}
CB_API cudaError_t cudaMemset3DAsync_ptsz(cudaPitchedPtr memory, int value, cudaExtent extent,
                                          cudaStream_t stream) {
  return set(memory, value, extent, stream, kPerThread, true);
}

CB_API cudaError_t cudaMemcpyBatchAsync(void* const* dsts, const void* const* srcs,
                                        const size_t* sizes, size_t count,
                                        cudaMemcpyAttributes* attributes, size_t* first_of,
                                        size_t num_attributes, cudaStream_t stream) {
  CopyBatch batch = {dsts, srcs, sizes, count, attributes, first_of, num_attributes};
  return api([&] { return copy_batch(batch, stream, kLegacy); });
}
CB_API cudaError_t cudaMemcpyBatchAsync_ptsz(void* const* dsts, const void* const* srcs,
                                             const size_t* sizes, size_t count,
                                             cudaMemcpyAttributes* attributes, size_t* first_of,
                                             size_t num_attributes, cudaStream_t stream) {
  CopyBatch batch = {dsts, srcs, sizes, count, attributes, first_of, num_attributes};
  return api([&] { return copy_batch(batch, stream, kPerThread); });
}
