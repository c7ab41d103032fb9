#pragma once

// Host functions and callbacks in streams (cudaLaunchHostFunc, cudaStreamAddCallback): one thread
// of the process runs them, one after the other, each when its turn has come in its stream.

namespace cb::sim {

class Call;
struct Cluster;
struct HostProcess;
struct HostThread;

void host_function(Call& call);
void host_function_next(Call& call);

/// The thread only waits for the next function: it holds up nothing, and nothing depends on it.
bool is_idle_function_thread(const HostThread& thread);

}  // namespace cb::sim
