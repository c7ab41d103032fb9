// Stream capture cannot begin here (cudaStreamBeginCapture is refused by name), so that the
// questions about it have true answers: no stream is capturing.

#include "simulator/shims/client/streams.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

cudaError_t capture_status(cudaStream_t handle, DefaultStream null_means,
                           cudaStreamCaptureStatus* status) {
  Stream stream;
  if (status == nullptr) return cudaErrorInvalidValue;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  *status = cudaStreamCaptureStatusNone;
  return cudaSuccess;
}

}  // namespace

CB_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return api([&] { return capture_status(stream, DefaultStream::kLegacy, status); });
}
CB_API cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream,
                                              cudaStreamCaptureStatus* status) {
  return api([&] { return capture_status(stream, DefaultStream::kPerThread, status); });
}

// The remaining results mean something only while a stream is capturing.
CB_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long*, cudaGraph_t*,
                                            const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                            size_t*) {
  return api([&] { return capture_status(stream, DefaultStream::kLegacy, status); });
}
CB_API cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream,
                                                 cudaStreamCaptureStatus* status,
                                                 unsigned long long*, cudaGraph_t*,
                                                 const cudaGraphNode_t**, const cudaGraphEdgeData**,
                                                 size_t*) {
  return api([&] { return capture_status(stream, DefaultStream::kPerThread, status); });
}

CB_API cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode) {
  return api([&] {
    if (mode == nullptr || *mode < cudaStreamCaptureModeGlobal ||
        *mode > cudaStreamCaptureModeRelaxed) {
      return cudaErrorInvalidValue;
    }
    cudaStreamCaptureMode previous = this_thread().capture_mode;
    this_thread().capture_mode = *mode;
    *mode = previous;
    return cudaSuccess;
  });
}
