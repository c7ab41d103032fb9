// Capture and graphs of the driver API: the runtime's under other names.

#include "simulator/shims/client/graphs.h"

#include "simulator/shims/client/report.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

CUresult begin(CUstream stream, CUstreamCaptureMode mode, DefaultStream null_means) {
  return driver_call(
      [&] { return begin_capture(stream, static_cast<cudaStreamCaptureMode>(mode), null_means); });
}

CUresult end(CUstream stream, DefaultStream null_means, CUgraph* handle) {
  return driver_call([&] {
    if (handle == nullptr) return cudaErrorInvalidValue;
    *handle = nullptr;
    Graph* graph = nullptr;
    cudaError_t error = end_capture(stream, null_means, &graph);
    return error == cudaSuccess ? new_graph(graph, handle) : error;
  });
}

CUresult status_of(CUstream stream, DefaultStream null_means, CUstreamCaptureStatus* status) {
  return driver_call([&] {
    return capture_status(stream, null_means, reinterpret_cast<cudaStreamCaptureStatus*>(status),
                          nullptr);
  });
}

}  // namespace

CB_DRIVER CUresult cuStreamBeginCapture_v2(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, mode, kLegacy);
}
CB_DRIVER CUresult cuStreamBeginCapture_v2_ptsz(CUstream stream, CUstreamCaptureMode mode) {
  return begin(stream, mode, kPerThread);
}

CB_DRIVER CUresult cuStreamEndCapture(CUstream stream, CUgraph* graph) {
  return end(stream, kLegacy, graph);
}
CB_DRIVER CUresult cuStreamEndCapture_ptsz(CUstream stream, CUgraph* graph) {
  return end(stream, kPerThread, graph);
}

CB_DRIVER CUresult cuStreamIsCapturing(CUstream stream, CUstreamCaptureStatus* status) {
  return status_of(stream, kLegacy, status);
}
CB_DRIVER CUresult cuStreamIsCapturing_ptsz(CUstream stream, CUstreamCaptureStatus* status) {
  return status_of(stream, kPerThread, status);
}

CB_DRIVER CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph graph,
                                               unsigned long long flags) {
  return driver_call([&] {
    constexpr unsigned long long kHarmless = CUDA_GRAPH_INSTANTIATE_FLAG_AUTO_FREE_ON_LAUNCH |
                                             CUDA_GRAPH_INSTANTIATE_FLAG_UPLOAD |
                                             CUDA_GRAPH_INSTANTIATE_FLAG_USE_NODE_PRIORITY;
    if ((flags & ~kHarmless) != 0) {
      report("cuGraphInstantiate: launches from the device (flags %#llx) are not supported", flags);
      return cudaErrorNotSupported;
    }
    return instantiate_graph(exec, graph);
  });
}

CB_DRIVER CUresult cuGraphLaunch(CUgraphExec exec, CUstream stream) {
  return driver_call([&] { return launch_graph(exec, stream, kLegacy); });
}
CB_DRIVER CUresult cuGraphLaunch_ptsz(CUgraphExec exec, CUstream stream) {
  return driver_call([&] { return launch_graph(exec, stream, kPerThread); });
}

CB_DRIVER CUresult cuGraphClone(CUgraph* clone, CUgraph original) {
  return driver_call([&] { return clone_graph(clone, original); });
}
CB_DRIVER CUresult cuGraphExecDestroy(CUgraphExec exec) {
  return driver_call([&] { return destroy_exec(exec); });
}
CB_DRIVER CUresult cuGraphDestroy(CUgraph graph) {
  return driver_call([&] { return destroy_graph(graph); });
}
