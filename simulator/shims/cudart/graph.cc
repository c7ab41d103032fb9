// Graphs that were captured: see client/graphs.h. Graphs that are built node by node are refused by
// name.

#include "simulator/shims/client/graphs.h"

#include "simulator/shims/client/report.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

cudaError_t instantiate(cudaGraphExec_t* exec, cudaGraph_t graph, unsigned long long flags) {
  return api([&] {
    // Uploading costs nothing here, and priorities are those of the nodes.
    constexpr unsigned long long kHarmless = cudaGraphInstantiateFlagAutoFreeOnLaunch |
                                             cudaGraphInstantiateFlagUpload |
                                             cudaGraphInstantiateFlagUseNodePriority;
    if ((flags & ~kHarmless) != 0) {
      report("cudaGraphInstantiate: launches from the device (flags %#llx) are not supported",
             flags);
      return cudaErrorNotSupported;
    }
    return instantiate_graph(exec, graph);
  });
}

}  // namespace

CB_API cudaError_t cudaGraphInstantiate(cudaGraphExec_t* exec, cudaGraph_t graph,
                                        unsigned long long flags) {
  return instantiate(exec, graph, flags);
}
CB_API cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* exec, cudaGraph_t graph,
                                                 unsigned long long flags) {
  return instantiate(exec, graph, flags);
}

CB_API cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream) {
  return api([&] { return launch_graph(exec, stream, kLegacy); });
}
CB_API cudaError_t cudaGraphLaunch_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return api([&] { return launch_graph(exec, stream, kPerThread); });
}

CB_API cudaError_t cudaGraphUpload(cudaGraphExec_t exec, cudaStream_t stream) {
  return api([&] { return upload_graph(exec, stream, kLegacy); });
}
CB_API cudaError_t cudaGraphUpload_ptsz(cudaGraphExec_t exec, cudaStream_t stream) {
  return api([&] { return upload_graph(exec, stream, kPerThread); });
}

CB_API cudaError_t cudaGraphExecUpdate(cudaGraphExec_t exec, cudaGraph_t graph,
                                       cudaGraphExecUpdateResultInfo* info) {
  return api([&] {
    if (info == nullptr) return cudaErrorInvalidValue;
    *info = {};
    return update_graph(exec, graph, &info->result);
  });
}

CB_API cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t original) {
  return api([&] { return clone_graph(clone, original); });
}

CB_API cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, size_t* count) {
  return api([&] {
    if (nodes != nullptr) {
      report("cudaGraphGetNodes: nodes have no handles; only their number is known");
      return cudaErrorNotSupported;
    }
    return graph_nodes(graph, count);
  });
}

CB_API cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec) {
  return api([&] { return destroy_exec(exec); });
}

CB_API cudaError_t cudaGraphDestroy(cudaGraph_t graph) {
  return api([&] { return destroy_graph(graph); });
}
