#include <commbench/families/p2p.h>

#include <vector>

namespace {

struct State {
  cb_context* context;
  cb_p2p_role role;
  int partner;
  void* own;       // allocated here, exported to the partner
  void* partners;  // the partner's allocation, opened here
};

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  State* self = new State{context, args->role, args->partner, nullptr, nullptr};
  *state = self;
  if (cudaMalloc(&self->own, args->max_bytes + 4096) != cudaSuccess) return CB_ERR_MEMORY;
  cudaIpcMemHandle_t handle = {};
  if (cudaIpcGetMemHandle(&handle, self->own) != cudaSuccess) return CB_ERR_CUDA;
  std::vector<cudaIpcMemHandle_t> handles(cb_world_size(context));
  cb_status status = cb_allgather(context, &handle, handles.data(), sizeof(handle));
  if (status != CB_OK || self->partner < 0) return status;
  if (cudaIpcOpenMemHandle(&self->partners, handles[self->partner],
                           cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
    return CB_ERR_CUDA;
  }
  return CB_OK;
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  const State& self = *static_cast<State*>(state);
  if (step->bytes == 0 || self.role == CB_P2P_IDLE) return CB_OK;
  // Sender: bring step->source.local to where the receiver can read it, and tell it.
  // Receiver: wait, copy to step->target.local, and tell the sender that it may go on.
  (void)stream;
  return CB_ERR_UNSUPPORTED;
}

extern "C" void cb_teardown(void* state) {
  State* self = static_cast<State*>(state);
  if (self->partners != nullptr) cudaIpcCloseMemHandle(self->partners);
  cb_barrier(self->context);  // nobody still has it open
  cudaFree(self->own);
  delete self;
}
