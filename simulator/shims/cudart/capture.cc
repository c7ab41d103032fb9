// Stream capture: see client/capture.h. The functions exist for the legacy default stream and, with
// the suffix _ptsz, for that of the thread.

#include "simulator/shims/client/capture.h"

#include "simulator/shims/client/graphs.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t end(cudaStream_t stream, DefaultStream null_means, cudaGraph_t* handle) {
  return api([&] {
    if (handle == nullptr) return cudaErrorInvalidValue;
    *handle = nullptr;
    Graph* graph = nullptr;
    cudaError_t error = end_capture(stream, null_means, &graph);
    return error == cudaSuccess ? new_graph(graph, handle) : error;
  });
}

/// The graph under capture and its nodes have no handles here.
cudaError_t info(cudaStream_t stream, DefaultStream null_means, cudaStreamCaptureStatus* status,
                 unsigned long long* id, const void* graph, const void* nodes, const void* edges) {
  return api([&] {
    cudaError_t error = capture_status(stream, null_means, status, id);
    if (error != cudaSuccess || *status == cudaStreamCaptureStatusNone) return error;
    if (graph == nullptr && nodes == nullptr && edges == nullptr) return cudaSuccess;
    report("cudaStreamGetCaptureInfo: the graph and nodes of a capture are not supported");
    return cudaErrorNotSupported;
  });
}

}  // namespace

CB_API cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return api([&] { return begin_capture(stream, mode, kLegacy); });
}
CB_API cudaError_t cudaStreamBeginCapture_ptsz(cudaStream_t stream, cudaStreamCaptureMode mode) {
  return api([&] { return begin_capture(stream, mode, kPerThread); });
}

CB_API cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph) {
  return end(stream, kLegacy, graph);
}
CB_API cudaError_t cudaStreamEndCapture_ptsz(cudaStream_t stream, cudaGraph_t* graph) {
  return end(stream, kPerThread, graph);
}

CB_API cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status) {
  return api([&] { return capture_status(stream, kLegacy, status, nullptr); });
}
CB_API cudaError_t cudaStreamIsCapturing_ptsz(cudaStream_t stream,
                                              cudaStreamCaptureStatus* status) {
  return api([&] { return capture_status(stream, kPerThread, status, nullptr); });
}

CB_API cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                            unsigned long long* id, cudaGraph_t* graph,
                                            const cudaGraphNode_t** nodes,
                                            const cudaGraphEdgeData** edges, size_t*) {
  return info(stream, kLegacy, status, id, graph, nodes, edges);
}
CB_API cudaError_t cudaStreamGetCaptureInfo_ptsz(cudaStream_t stream,
                                                 cudaStreamCaptureStatus* status,
                                                 unsigned long long* id, cudaGraph_t* graph,
                                                 const cudaGraphNode_t** nodes,
                                                 const cudaGraphEdgeData** edges, size_t*) {
  return info(stream, kPerThread, status, id, graph, nodes, edges);
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
