#pragma once

// Stream capture. What would be sent for a captured stream becomes a node of a graph instead; a
// graph is replayed by sending its nodes again, on streams and with events of its own.
//
// Streams that join a capture through an event are its lanes, lane 0 is the one that began it. What
// is ordered before what is kept in a clock for each lane and event: of every lane, how many of its
// nodes come before.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/protocol/protocol.h"
#include "simulator/shims/client/events.h"
#include "simulator/shims/client/list.h"
#include "simulator/shims/client/streams.h"
#include "simulator/shims/client/wire.h"

namespace cb::sim::client {

inline constexpr uint32_t kMaxLanes = 32;

/// One request, without the stream and event that it will be sent for.
struct GraphNode {
  enum class Kind : uint32_t { kLaunch, kCopy, kCopy2D, kFill, kRecord, kWait };
  Kind kind = Kind::kLaunch;
  uint32_t lane = 0;
  uint32_t event = 0;  ///< kRecord, kWait: number in the graph
  uint16_t flags = 0;
  uint32_t payload_bytes = 0;
  void* payload = nullptr;  ///< owned by the graph
  uint64_t args[8] = {};
};

struct Graph {
  List<GraphNode> nodes;
  uint32_t num_lanes = 1;
  uint32_t num_events = 0;
  int device = 0;
};
/// Frees nodes and payloads.
void release(Graph& graph);
/// False when memory is out.
bool copy_graph(const Graph& from, Graph& to);

/// How a call that is about to be made stands to captures.
enum class Captured {
  kNo,    ///< make it
  kYes,   ///< it became a node; `error` is what the call returns
  kError  ///< it is not allowed; `error` says why, and captures may have become invalid
};

/// A launch, copy or fill for `stream`. `node` has all but the lane; its payload is copied from
/// `first` and `second`.
Captured capture_work(const Stream& stream, const GraphNode& node, Bytes first, Bytes second,
                      cudaError_t* error);
Captured capture_record(const Stream& stream, Event& event, cudaError_t* error);
Captured capture_wait(const Stream& stream, Event& event, cudaError_t* error);
/// A synchronisation or query of the stream, or something that needs a reply for it: not allowed in
/// a captured stream.
cudaError_t refuse_in_capture(const Stream& stream);
/// A call that might wait for all work (cudaDeviceSynchronize, cudaMalloc, ...): not allowed while
/// a capture is under way that the calling thread must not disturb.
cudaError_t refuse_during_capture();

cudaError_t begin_capture(cudaStream_t stream, cudaStreamCaptureMode mode,
                          DefaultStream null_means);
/// The graph is the caller's; nullptr after an error.
cudaError_t end_capture(cudaStream_t stream, DefaultStream null_means, Graph** graph);
cudaError_t capture_status(cudaStream_t stream, DefaultStream null_means,
                           cudaStreamCaptureStatus* status, unsigned long long* id);

}  // namespace cb::sim::client
