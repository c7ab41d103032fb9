#pragma once

// Graphs and what they are instantiated to, by handle.

#include <cuda_runtime_api.h>

#include "simulator/shims/client/capture.h"

namespace cb::sim::client {

/// Takes over a captured graph.
cudaError_t new_graph(Graph* graph, cudaGraph_t* handle);
cudaError_t destroy_graph(cudaGraph_t handle);
cudaError_t clone_graph(cudaGraph_t* clone, cudaGraph_t original);
/// Numbers of nodes, the waits and records of events that only order them apart.
cudaError_t graph_nodes(cudaGraph_t handle, size_t* count);

cudaError_t instantiate_graph(cudaGraphExec_t* exec, cudaGraph_t graph);
/// The nodes again, on streams of the exec's own but for lane 0. Launches of one exec follow each
/// other.
cudaError_t launch_graph(cudaGraphExec_t exec, cudaStream_t stream, DefaultStream null_means);
cudaError_t upload_graph(cudaGraphExec_t exec, cudaStream_t stream, DefaultStream null_means);
/// New parameters from a graph of the same shape.
cudaError_t update_graph(cudaGraphExec_t exec, cudaGraph_t graph,
                         cudaGraphExecUpdateResult* result);
cudaError_t destroy_exec(cudaGraphExec_t exec);

}  // namespace cb::sim::client
