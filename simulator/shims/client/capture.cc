#include "simulator/shims/client/capture.h"

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <new>

#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/thread.h"

namespace cb::sim::client {
namespace {

struct Clock {
  uint32_t before[kMaxLanes] = {};

  void join(const Clock& other) {
    for (uint32_t lane = 0; lane < kMaxLanes; ++lane) {
      if (other.before[lane] > before[lane]) before[lane] = other.before[lane];
    }
  }
};

struct Lane {
  uint64_t stream = 0;
  bool blocking = true;  ///< the legacy stream waits for it
  uint32_t nodes = 0;
  Clock clock;
};

struct CapturedEvent {
  uint64_t id = 0;  ///< of the program's event
  uint32_t number = 0;
  Clock clock;
};

struct Capture {
  unsigned long long id = 0;
  cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal;
  const Thread* thread = nullptr;
  bool invalid = false;
  Graph* graph = nullptr;
  List<Lane> lanes;
  List<CapturedEvent> events;
};

Mutex mutex;
List<Capture*> captures;
std::atomic<uint32_t> num_captures{0};
unsigned long long next_capture_id = 1;

/// The capture that a stream is in, and its lane there. With the lock held.
Capture* find_capture(uint64_t stream, uint32_t* lane) {
  for (size_t at = 0; at < captures.size(); ++at) {
    for (size_t number = 0; number < captures[at]->lanes.size(); ++number) {
      if (captures[at]->lanes[number].stream != stream) continue;
      *lane = static_cast<uint32_t>(number);
      return captures[at];
    }
  }
  return nullptr;
}

CapturedEvent* find_captured(Capture& capture, uint64_t event) {
  for (size_t at = 0; at < capture.events.size(); ++at) {
    if (capture.events[at].id == event) return &capture.events[at];
  }
  return nullptr;
}

void forget_event(uint64_t event) {
  for (size_t at = 0; at < captures.size(); ++at) {
    List<CapturedEvent>& events = captures[at]->events;
    for (size_t number = events.size(); number-- > 0;) {
      if (events[number].id == event) events.erase(number);
    }
  }
}

cudaError_t invalidate(Capture& capture, cudaError_t error) {
  capture.invalid = true;
  return error;
}

/// The legacy stream waits for all blocking streams, captured ones too.
cudaError_t check_legacy(const Stream& stream) {
  if (stream.id != kNullStream) return cudaSuccess;
  cudaError_t error = cudaSuccess;
  for (size_t at = 0; at < captures.size(); ++at) {
    for (size_t lane = 0; lane < captures[at]->lanes.size(); ++lane) {
      if (!captures[at]->lanes[lane].blocking) continue;
      error = invalidate(*captures[at], cudaErrorStreamCaptureImplicit);
    }
  }
  return error;
}

bool add_node(Capture& capture, uint32_t lane, GraphNode node) {
  node.lane = lane;
  if (!capture.graph->nodes.push(node)) return false;
  ++capture.lanes[lane].nodes;
  capture.lanes[lane].clock.before[lane] = capture.lanes[lane].nodes;
  return true;
}

void drop(Capture* capture) {
  for (size_t at = captures.size(); at-- > 0;) {
    if (captures[at] == capture) captures.erase(at);
  }
  --num_captures;
  capture->lanes.release();
  capture->events.release();
  free(capture);
}

/// Whether all lanes are ordered before what would come next in lane 0.
bool is_joined(const Capture& capture) {
  for (size_t lane = 1; lane < capture.lanes.size(); ++lane) {
    if (capture.lanes[0].clock.before[lane] != capture.lanes[lane].nodes) return false;
  }
  return true;
}

template <class T>
T* make() {
  void* memory = calloc(1, sizeof(T));
  return memory == nullptr ? nullptr : new (memory) T();
}

}  // namespace

void release(Graph& graph) {
  for (size_t at = 0; at < graph.nodes.size(); ++at) free(graph.nodes[at].payload);
  graph.nodes.release();
}

bool copy_graph(const Graph& from, Graph& to) {
  to.num_lanes = from.num_lanes;
  to.num_events = from.num_events;
  to.device = from.device;
  for (size_t at = 0; at < from.nodes.size(); ++at) {
    GraphNode node = from.nodes[at];
    if (node.payload != nullptr) {
      void* payload = malloc(node.payload_bytes);
      if (payload == nullptr) return false;
      memcpy(payload, node.payload, node.payload_bytes);
      node.payload = payload;
    }
    if (!to.nodes.push(node)) return false;
  }
  return true;
}

Captured capture_work(const Stream& stream, const GraphNode& work, Bytes first, Bytes second,
                      cudaError_t* error) {
  if (num_captures.load(std::memory_order_acquire) == 0) return Captured::kNo;
  Lock lock(mutex);
  uint32_t lane = 0;
  Capture* capture = find_capture(stream.id, &lane);
  if (capture == nullptr) {
    *error = check_legacy(stream);
    return *error == cudaSuccess ? Captured::kNo : Captured::kError;
  }
  *error = cudaErrorStreamCaptureInvalidated;
  if (capture->invalid) return Captured::kError;
  GraphNode node = work;
  node.payload_bytes = static_cast<uint32_t>(first.size + second.size);
  *error = cudaErrorMemoryAllocation;
  if (node.payload_bytes != 0) {
    node.payload = malloc(node.payload_bytes);
    if (node.payload == nullptr) return Captured::kError;
    memcpy(node.payload, first.data, first.size);
    if (second.size != 0) {
      memcpy(static_cast<uint8_t*>(node.payload) + first.size, second.data, second.size);
    }
  }
  if (!add_node(*capture, lane, node)) return Captured::kError;
  *error = cudaSuccess;
  return Captured::kYes;
}

Captured capture_record(const Stream& stream, Event& event, cudaError_t* error) {
  if (num_captures.load(std::memory_order_acquire) == 0) {
    event.captured = false;
    return Captured::kNo;
  }
  Lock lock(mutex);
  uint32_t lane = 0;
  Capture* capture = find_capture(stream.id, &lane);
  forget_event(event.id);
  if (capture == nullptr) {
    event.captured = false;
    *error = check_legacy(stream);
    return *error == cudaSuccess ? Captured::kNo : Captured::kError;
  }
  *error = cudaErrorStreamCaptureInvalidated;
  if (capture->invalid) return Captured::kError;
  GraphNode node;
  node.kind = GraphNode::Kind::kRecord;
  node.event = capture->graph->num_events++;
  *error = cudaErrorMemoryAllocation;
  if (!add_node(*capture, lane, node)) return Captured::kError;
  CapturedEvent captured{event.id, node.event, capture->lanes[lane].clock};
  if (!capture->events.push(captured)) return Captured::kError;
  event.captured = true;
  *error = cudaSuccess;
  return Captured::kYes;
}

Captured capture_wait(const Stream& stream, Event& event, cudaError_t* error) {
  if (num_captures.load(std::memory_order_acquire) == 0) return Captured::kNo;
  Lock lock(mutex);
  uint32_t lane = 0;
  Capture* own = find_capture(stream.id, &lane);
  Capture* capture = nullptr;
  CapturedEvent* captured = nullptr;
  for (size_t at = 0; at < captures.size() && captured == nullptr; ++at) {
    capture = captures[at];
    captured = find_captured(*capture, event.id);
  }
  if (captured == nullptr) {
    if (own == nullptr) return Captured::kNo;
    // What happens outside is not ordered with a graph that runs later.
    *error = invalidate(*own, cudaErrorStreamCaptureIsolation);
    return Captured::kError;
  }
  if (own != nullptr && own != capture) {
    invalidate(*own, cudaSuccess);
    *error = invalidate(*capture, cudaErrorStreamCaptureMerge);
    return Captured::kError;
  }
  *error = cudaErrorStreamCaptureInvalidated;
  if (capture->invalid) return Captured::kError;
  if (own == nullptr) {
    *error = cudaErrorStreamCaptureImplicit;
    if (stream.id == kNullStream) return Captured::kError;
    *error = cudaErrorMemoryAllocation;
    Lane joined;
    joined.stream = stream.id;
    joined.blocking = (stream.flags & cudaStreamNonBlocking) == 0;
    if (capture->lanes.size() == kMaxLanes || !capture->lanes.push(joined)) {
      return Captured::kError;
    }
    lane = static_cast<uint32_t>(capture->lanes.size() - 1);
  }
  GraphNode node;
  node.kind = GraphNode::Kind::kWait;
  node.event = captured->number;
  *error = cudaErrorMemoryAllocation;
  if (!add_node(*capture, lane, node)) return Captured::kError;
  capture->lanes[lane].clock.join(captured->clock);
  *error = cudaSuccess;
  return Captured::kYes;
}

cudaError_t refuse_in_capture(const Stream& stream) {
  if (num_captures.load(std::memory_order_acquire) == 0) return cudaSuccess;
  Lock lock(mutex);
  uint32_t lane = 0;
  Capture* capture = find_capture(stream.id, &lane);
  if (capture == nullptr) return check_legacy(stream);
  if (capture->invalid) return cudaErrorStreamCaptureInvalidated;
  return invalidate(*capture, cudaErrorStreamCaptureUnsupported);
}

cudaError_t refuse_during_capture() {
  if (num_captures.load(std::memory_order_acquire) == 0) return cudaSuccess;
  Thread& thread = this_thread();
  if (thread.capture_mode == cudaStreamCaptureModeRelaxed) return cudaSuccess;
  Lock lock(mutex);
  cudaError_t error = cudaSuccess;
  for (size_t at = 0; at < captures.size(); ++at) {
    Capture& capture = *captures[at];
    if (capture.mode == cudaStreamCaptureModeRelaxed) continue;
    bool concerns =
        capture.thread == &thread || (capture.mode == cudaStreamCaptureModeGlobal &&
                                      thread.capture_mode == cudaStreamCaptureModeGlobal);
    if (concerns) error = invalidate(capture, cudaErrorStreamCaptureUnsupported);
  }
  return error;
}

cudaError_t begin_capture(cudaStream_t handle, cudaStreamCaptureMode mode,
                          DefaultStream null_means) {
  Stream stream;
  if (mode < cudaStreamCaptureModeGlobal || mode > cudaStreamCaptureModeRelaxed) {
    return cudaErrorInvalidValue;
  }
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  if (stream.id == kNullStream) return cudaErrorStreamCaptureUnsupported;
  Lock lock(mutex);
  uint32_t lane = 0;
  if (find_capture(stream.id, &lane) != nullptr) return cudaErrorIllegalState;
  auto* capture = make<Capture>();
  Graph* graph = make<Graph>();
  Lane first;
  first.stream = stream.id;
  first.blocking = (stream.flags & cudaStreamNonBlocking) == 0;
  if (capture == nullptr || graph == nullptr || !capture->lanes.push(first) ||
      !captures.push(capture)) {
    free(capture);
    free(graph);
    return cudaErrorMemoryAllocation;
  }
  capture->id = next_capture_id++;
  capture->mode = mode;
  capture->thread = &this_thread();
  capture->graph = graph;
  graph->device = stream.device;
  ++num_captures;
  return cudaSuccess;
}

cudaError_t end_capture(cudaStream_t handle, DefaultStream null_means, Graph** graph) {
  *graph = nullptr;
  Stream stream;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  Lock lock(mutex);
  uint32_t lane = 0;
  Capture* capture = find_capture(stream.id, &lane);
  if (capture == nullptr) return cudaErrorIllegalState;
  if (lane != 0) return invalidate(*capture, cudaErrorStreamCaptureUnmatched);
  if (capture->mode != cudaStreamCaptureModeRelaxed && capture->thread != &this_thread()) {
    return invalidate(*capture, cudaErrorStreamCaptureWrongThread);
  }
  cudaError_t error = capture->invalid       ? cudaErrorStreamCaptureInvalidated
                      : !is_joined(*capture) ? cudaErrorStreamCaptureUnjoined
                                             : cudaSuccess;
  capture->graph->num_lanes = static_cast<uint32_t>(capture->lanes.size());
  if (error == cudaSuccess) {
    *graph = capture->graph;
  } else {
    release(*capture->graph);
    free(capture->graph);
  }
  drop(capture);
  return error;
}

cudaError_t capture_status(cudaStream_t handle, DefaultStream null_means,
                           cudaStreamCaptureStatus* status, unsigned long long* id) {
  Stream stream;
  if (status == nullptr) return cudaErrorInvalidValue;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  *status = cudaStreamCaptureStatusNone;
  Lock lock(mutex);
  if (stream.id == kNullStream) {
    // Whether it is being captured cannot be said without disturbing those that are.
    return captures.size() == 0 ? cudaSuccess : cudaErrorStreamCaptureImplicit;
  }
  uint32_t lane = 0;
  Capture* capture = find_capture(stream.id, &lane);
  if (capture == nullptr) return cudaSuccess;
  *status = capture->invalid ? cudaStreamCaptureStatusInvalidated : cudaStreamCaptureStatusActive;
  if (id != nullptr) *id = capture->id;
  return cudaSuccess;
}

}  // namespace cb::sim::client
