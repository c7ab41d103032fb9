#include "simulator/shims/client/graphs.h"

#include <cstdlib>
#include <cstring>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/handles.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {
namespace {

using Kind = GraphNode::Kind;

/// What the handle of a graph stands for.
struct GraphSlot {
  Graph graph;
};

struct ExecSlot {
  Graph graph;
  List<uint64_t> streams;  ///< of lanes 1 and up
  List<uint64_t> events;
  uint64_t done = 0;  ///< event: the launch before is over
  bool launched = false;
};

HandleTable<GraphSlot, 1 << 14> graphs;
HandleTable<ExecSlot, 1 << 14> execs;

cudaError_t create_order_event(uint64_t id, int device) {
  return Call(Op::kEventCreate).args(id, unsigned{cudaEventDisableTiming}, device).send();
}

cudaError_t create_queues(ExecSlot& exec) {
  for (uint32_t lane = 1; lane < exec.graph.num_lanes; ++lane) {
    uint64_t id = new_id();
    if (!exec.streams.push(id)) return cudaErrorMemoryAllocation;
    cudaError_t error = Call(Op::kStreamCreate)
                            .args(id, unsigned{cudaStreamNonBlocking}, 0, exec.graph.device)
                            .send();
    if (error != cudaSuccess) return error;
  }
  for (uint32_t number = 0; number < exec.graph.num_events; ++number) {
    uint64_t id = new_id();
    if (!exec.events.push(id)) return cudaErrorMemoryAllocation;
    cudaError_t error = create_order_event(id, exec.graph.device);
    if (error != cudaSuccess) return error;
  }
  exec.done = new_id();
  return create_order_event(exec.done, exec.graph.device);
}

cudaError_t send_launch(const GraphNode& node, uint64_t stream, uint16_t part) {
  Launch launch;
  memcpy(&launch, node.payload, sizeof launch);
  launch.stream = stream;
  const auto* parameters = static_cast<const uint8_t*>(node.payload) + sizeof launch;
  return Call(Op::kLaunch, part)
      .payload({&launch, sizeof launch}, {parameters, node.payload_bytes - sizeof launch})
      .send();
}

cudaError_t send_copy(const GraphNode& node, uint64_t stream, uint16_t part) {
  uint16_t flags = node.flags | part;
  if (node.kind == Kind::kCopy) {
    return Call(Op::kMemcpy, flags)
        .args(node.args[0], node.args[1], node.args[2], stream, node.args[4])
        .send();
  }
  Copy2D copy;
  memcpy(&copy, node.payload, sizeof copy);
  copy.stream = stream;
  return Call(Op::kMemcpy2D, flags).payload({&copy, sizeof copy}).send();
}

/// `part` 0: with the host's cost of a launch, which the first node pays for all.
cudaError_t send_node(const ExecSlot& exec, const GraphNode& node, uint64_t first_stream,
                      uint16_t part) {
  uint64_t stream = node.lane == 0 ? first_stream : exec.streams[node.lane - 1];
  int device = exec.graph.device;
  switch (node.kind) {
    case Kind::kLaunch:
      return send_launch(node, stream, part);
    case Kind::kCopy:
    case Kind::kCopy2D:
      return send_copy(node, stream, part);
    case Kind::kFill:
      return Call(Op::kMemset, node.flags | part)
          .args(node.args[0], node.args[1], node.args[2], node.args[3], node.args[4], node.args[5],
                stream, node.args[7])
          .send();
    case Kind::kRecord:
      return Call(Op::kEventRecord, part).args(exec.events[node.event], stream, device).send();
    case Kind::kWait:
      return Call(Op::kStreamWait, part).args(stream, device, exec.events[node.event]).send();
  }
  return cudaErrorInvalidValue;
}

bool same_shape(const Graph& a, const Graph& b) {
  if (a.nodes.size() != b.nodes.size() || a.num_lanes != b.num_lanes ||
      a.num_events != b.num_events || a.device != b.device) {
    return false;
  }
  for (size_t at = 0; at < a.nodes.size(); ++at) {
    const GraphNode& one = a.nodes[at];
    const GraphNode& other = b.nodes[at];
    if (one.kind != other.kind || one.lane != other.lane || one.event != other.event) return false;
  }
  return true;
}

}  // namespace

cudaError_t new_graph(Graph* graph, cudaGraph_t* handle) {
  void* created;
  GraphSlot* slot = graphs.create(&created);
  if (slot == nullptr) {
    release(*graph);
    free(graph);
    return cudaErrorMemoryAllocation;
  }
  memcpy(&slot->graph, graph, sizeof *graph);
  free(graph);
  *handle = static_cast<cudaGraph_t>(created);
  return cudaSuccess;
}

cudaError_t destroy_graph(cudaGraph_t handle) {
  GraphSlot* slot = graphs.find(handle);
  if (slot == nullptr) return cudaErrorInvalidValue;
  release(slot->graph);
  return graphs.destroy(handle) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t clone_graph(cudaGraph_t* clone, cudaGraph_t original) {
  GraphSlot* from = graphs.find(original);
  if (clone == nullptr || from == nullptr) return cudaErrorInvalidValue;
  void* created;
  GraphSlot* slot = graphs.create(&created);
  if (slot == nullptr) return cudaErrorMemoryAllocation;
  if (!copy_graph(from->graph, slot->graph)) {
    release(slot->graph);
    graphs.destroy(created);
    return cudaErrorMemoryAllocation;
  }
  *clone = static_cast<cudaGraph_t>(created);
  return cudaSuccess;
}

cudaError_t graph_nodes(cudaGraph_t handle, size_t* count) {
  GraphSlot* slot = graphs.find(handle);
  if (slot == nullptr || count == nullptr) return cudaErrorInvalidValue;
  *count = 0;
  for (size_t at = 0; at < slot->graph.nodes.size(); ++at) {
    Kind kind = slot->graph.nodes[at].kind;
    *count += kind != Kind::kRecord && kind != Kind::kWait;
  }
  return cudaSuccess;
}

cudaError_t instantiate_graph(cudaGraphExec_t* exec, cudaGraph_t graph) {
  GraphSlot* from = graphs.find(graph);
  if (exec == nullptr || from == nullptr) return cudaErrorInvalidValue;
  void* created;
  ExecSlot* slot = execs.create(&created);
  if (slot == nullptr) return cudaErrorMemoryAllocation;
  cudaError_t error =
      copy_graph(from->graph, slot->graph) ? create_queues(*slot) : cudaErrorMemoryAllocation;
  if (error != cudaSuccess) {
    destroy_exec(static_cast<cudaGraphExec_t>(created));
    return error;
  }
  *exec = static_cast<cudaGraphExec_t>(created);
  return cudaSuccess;
}

cudaError_t launch_graph(cudaGraphExec_t handle, cudaStream_t stream_handle,
                         DefaultStream null_means) {
  ExecSlot* exec = execs.find(handle);
  Stream stream;
  if (exec == nullptr) return cudaErrorInvalidValue;
  if (!find_stream(stream_handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  if (stream.device != exec->graph.device) return cudaErrorInvalidValue;
  // A graph in a graph would be a child node.
  cudaError_t error = refuse_in_capture(stream);
  if (error != cudaSuccess) return error;
  if (exec->launched) {
    error = Call(Op::kStreamWait, kPartOfGraph).args(stream.id, stream.device, exec->done).send();
  }
  for (size_t at = 0; at < exec->graph.nodes.size() && error == cudaSuccess; ++at) {
    error = send_node(*exec, exec->graph.nodes[at], stream.id, at == 0 ? 0 : kPartOfGraph);
  }
  if (error != cudaSuccess) return error;
  exec->launched = true;
  return Call(Op::kEventRecord, kPartOfGraph).args(exec->done, stream.id, stream.device).send();
}

cudaError_t upload_graph(cudaGraphExec_t handle, cudaStream_t stream_handle,
                         DefaultStream null_means) {
  Stream stream;
  if (execs.find(handle) == nullptr) return cudaErrorInvalidValue;
  if (!find_stream(stream_handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  return cudaSuccess;
}

cudaError_t update_graph(cudaGraphExec_t handle, cudaGraph_t graph,
                         cudaGraphExecUpdateResult* result) {
  ExecSlot* exec = execs.find(handle);
  GraphSlot* from = graphs.find(graph);
  if (exec == nullptr || from == nullptr || result == nullptr) return cudaErrorInvalidValue;
  *result = cudaGraphExecUpdateErrorTopologyChanged;
  if (!same_shape(exec->graph, from->graph)) return cudaErrorGraphExecUpdateFailure;
  Graph updated;
  if (!copy_graph(from->graph, updated)) {
    release(updated);
    return cudaErrorMemoryAllocation;
  }
  release(exec->graph);
  memcpy(&exec->graph, &updated, sizeof updated);
  *result = cudaGraphExecUpdateSuccess;
  return cudaSuccess;
}

cudaError_t destroy_exec(cudaGraphExec_t handle) {
  ExecSlot* exec = execs.find(handle);
  if (exec == nullptr) return cudaErrorInvalidValue;
  // Work that was launched goes on.
  for (size_t at = 0; at < exec->streams.size(); ++at) {
    Call(Op::kStreamDestroy).args(exec->streams[at]).send();
  }
  for (size_t at = 0; at < exec->events.size(); ++at) {
    Call(Op::kEventDestroy).args(exec->events[at]).send();
  }
  if (exec->done != 0) Call(Op::kEventDestroy).args(exec->done).send();
  release(exec->graph);
  exec->streams.release();
  exec->events.release();
  return execs.destroy(handle) ? cudaSuccess : cudaErrorInvalidValue;
}

}  // namespace cb::sim::client
