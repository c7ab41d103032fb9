#include "simulator/shims/client/stream_memory.h"

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/report.h"

namespace cb::sim::client {

cudaError_t do_stream_memory(cudaStream_t handle, const StreamMemoryOp* operations, size_t count,
                             DefaultStream null_means) {
  Stream stream;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = refuse_in_capture(stream);
  if (error == cudaErrorStreamCaptureUnsupported) {
    report("stream memory operations cannot be captured: such nodes of graphs are not supported");
  }
  if (error != cudaSuccess) return error;
  return Call(Op::kStreamMemory)
      .args(stream.id, stream.device)
      .payload({operations, count * sizeof(StreamMemoryOp)})
      .on(stream.device)
      .wait();
}

}  // namespace cb::sim::client
