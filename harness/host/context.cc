// The functions of commbench/task.h. They run in the candidate's process and check arguments only
// so that honest candidates get an answer; the simulator checks everything again.
#include "harness/host/context.h"

#include <dlfcn.h>

namespace cb::host {
namespace {

SimulatorApi api;

template <typename Function>
bool find(const char* name, Function& function) {
  function = reinterpret_cast<Function>(::dlsym(RTLD_DEFAULT, name));
  return function != nullptr;
}

bool is_rank(const cb_context* context, int rank) {
  return rank >= 0 && rank < context->job.world_size;
}

}  // namespace

bool load_simulator_api() {
  return find("commbench_sim_control_wait", api.control_wait) &&
         find("commbench_sim_allgather", api.allgather) &&
         find("commbench_sim_barrier", api.barrier) &&
         find("commbench_sim_exchange_fds", api.exchange_fds) &&
         find("commbench_sim_sym_alloc", api.sym_alloc) && find("commbench_sim_relax", api.relax);
}

const SimulatorApi& simulator_api() { return api; }

}  // namespace cb::host

using cb::host::is_rank;
using cb::host::simulator_api;

extern "C" {

int cb_rank(const cb_context* context) { return context->job.rank; }
int cb_world_size(const cb_context* context) { return context->job.world_size; }
int cb_node(const cb_context* context) { return context->job.node; }
int cb_num_nodes(const cb_context* context) { return context->job.num_nodes; }
int cb_device(const cb_context* context) { return context->job.device; }

int cb_node_of(const cb_context* context, int rank) {
  return is_rank(context, rank) ? rank / context->job.devices_per_node : -1;
}

int cb_device_of(const cb_context* context, int rank) {
  return is_rank(context, rank) ? rank % context->job.devices_per_node : -1;
}

cb_status cb_allgather(cb_context* context, const void* send, void* recv, size_t bytes) {
  if (context->in_step) return CB_ERR_PHASE;
  size_t most = 65536 / static_cast<size_t>(context->job.world_size);
  if (bytes > most || (bytes > 0 && (send == nullptr || recv == nullptr))) return CB_ERR_INVALID;
  return static_cast<cb_status>(
      simulator_api().allgather(send, recv, bytes, context->job.world_size));
}

cb_status cb_barrier(cb_context* context) {
  if (context->in_step) return CB_ERR_PHASE;
  return static_cast<cb_status>(simulator_api().barrier());
}

cb_status cb_exchange_fds(cb_context* context, int fd, int* received) {
  if (context->in_step) return CB_ERR_PHASE;
  return static_cast<cb_status>(
      simulator_api().exchange_fds(fd, received, context->job.world_size));
}

cb_status cb_sym_alloc(cb_context* context, size_t bytes, cb_span* span) {
  if (context->in_step) return CB_ERR_PHASE;
  if (context->job.scratch == 0) return CB_ERR_UNSUPPORTED;
  if (bytes == 0 || span == nullptr) return CB_ERR_INVALID;
  auto world_size = static_cast<size_t>(context->job.world_size);
  std::vector<uint64_t> addresses(world_size);
  uint64_t multicast = 0;
  int32_t status =
      simulator_api().sym_alloc(bytes, context->job.world_size, addresses.data(), &multicast);
  if (status != CB_OK) return static_cast<cb_status>(status);
  std::vector<void*>& peers = context->symmetric.emplace_back(world_size);
  for (size_t rank = 0; rank < world_size; ++rank) {
    peers[rank] = reinterpret_cast<void*>(addresses[rank]);
  }
  span->local = peers[static_cast<size_t>(context->job.rank)];
  span->peer = peers.data();
  span->multicast = reinterpret_cast<void*>(multicast);
  span->bytes = bytes;
  return CB_OK;
}

void cb_relax(void) { simulator_api().relax(); }

}  // extern "C"
