// The family's deliberately wrong candidate: correct, simple and slow, except for what the mode in
// COMMBENCH_WRONG_MODE makes the receiver leave out. See collective.cu.
//
// The sender copies into memory of its own and raises a flag; the receiver pulls and raises
// another. That memory is symmetric scratch where the task has it, else an allocation shared by
// CUDA IPC, so one candidate fits every task of the family.

#include <commbench/families/p2p.h>
#include <stdlib.h>
#include <string.h>

#include <vector>

namespace {

constexpr int kThreads = 1024;

enum Mode { kCorrect, kZeros, kOwnInput, kStale, kSkipTail, kNothing, kUnknown };
const char* const kModeNames[] = {"correct", "zeros", "own-input", "stale", "skip-tail", "nothing"};

Mode mode_from_environment() {
  const char* name = getenv("COMMBENCH_WRONG_MODE");
  for (int mode = 0; name != nullptr && mode < kUnknown; ++mode) {
    if (strcmp(name, kModeNames[mode]) == 0) return static_cast<Mode>(mode);
  }
  return kUnknown;
}

/// The start of every rank's memory; both are written by their owner only. Data follows.
struct Slab {
  uint64_t sent;      // sequence of the call whose data is in `data`
  uint64_t received;  // sequence of the call whose data has been copied out
  char data[1];
};

struct State {
  cb_context* context;
  cb_p2p_role role;
  Mode mode;
  uint64_t last_busy;  // sequence of the last call with data
  void* allocated;
  void* opened;
  Slab* own;
  Slab* partner;
};

__device__ void raise(uint64_t* flag, uint64_t value) {
  // Orders what the block has read and written before, then publishes.
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flag), "l"(value) : "memory");
  }
}

__device__ void wait_for(const uint64_t* flag, uint64_t value) {
  if (threadIdx.x == 0) {
    uint64_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
    } while (seen < value);
  }
  __syncthreads();
}

__global__ void __launch_bounds__(kThreads)
    send(Slab* own, const Slab* partner, const char* source, size_t bytes, uint64_t previous,
         uint64_t sequence) {
  wait_for(&partner->received, previous);
  for (size_t i = threadIdx.x; i < bytes; i += kThreads) own->data[i] = source[i];
  raise(&own->sent, sequence);
}

__global__ void __launch_bounds__(kThreads)
    receive(Slab* own, const Slab* partner, char* target, char* output, const char* own_source,
            size_t bytes, uint64_t sequence, Mode mode) {
  wait_for(&partner->sent, sequence);
  if (mode == kSkipTail) --bytes;
  for (size_t i = threadIdx.x; i < bytes && mode != kNothing; i += kThreads) {
    char byte = mode == kZeros ? 0 : mode == kOwnInput ? own_source[i] : partner->data[i];
    target[i] = byte;
    if (output != nullptr) output[i] = byte;
  }
  raise(&own->received, sequence);
}

cb_status share_by_ipc(State* self, const cb_args* args, size_t bytes) {
  if (cudaMalloc(&self->allocated, bytes) != cudaSuccess) return CB_ERR_MEMORY;
  cudaIpcMemHandle_t handle = {};
  if (cudaMemset(self->allocated, 0, bytes) != cudaSuccess ||
      cudaDeviceSynchronize() != cudaSuccess ||
      cudaIpcGetMemHandle(&handle, self->allocated) != cudaSuccess) {
    return CB_ERR_CUDA;
  }
  std::vector<cudaIpcMemHandle_t> handles(static_cast<size_t>(cb_world_size(self->context)));
  cb_status status = cb_allgather(self->context, &handle, handles.data(), sizeof(handle));
  if (status != CB_OK || args->partner < 0) return status;
  if (cudaIpcOpenMemHandle(&self->opened, handles[static_cast<size_t>(args->partner)],
                           cudaIpcMemLazyEnablePeerAccess) != cudaSuccess) {
    return CB_ERR_CUDA;
  }
  self->own = static_cast<Slab*>(self->allocated);
  self->partner = static_cast<Slab*>(self->opened);
  return CB_OK;
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  State* self = new State{context, args->role, mode_from_environment(), 0, nullptr, nullptr,
                          nullptr, nullptr};
  *state = self;
  if (self->mode == kUnknown) return CB_ERR_UNSUPPORTED;
  size_t bytes = sizeof(Slab) + args->max_bytes;
  cb_span span = {};
  cb_status status = cb_sym_alloc(context, bytes, &span);
  if (status == CB_ERR_UNSUPPORTED) return share_by_ipc(self, args, bytes);
  if (status != CB_OK || args->partner < 0) return status;
  self->own = static_cast<Slab*>(span.local);
  self->partner = static_cast<Slab*>(span.peer[args->partner]);
  return CB_OK;
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State& self = *static_cast<State*>(state);
  if (step->bytes == 0 || self.role == CB_P2P_IDLE) return CB_OK;
  const char* source = static_cast<const char*>(step->source.local);
  if (self.role == CB_P2P_SENDER) {
    send<<<1, kThreads, 0, stream>>>(self.own, self.partner, source, step->bytes, self.last_busy,
                                     step->sequence);
  } else {
    Mode mode = self.mode;
    if (mode == kStale) mode = self.last_busy == 0 ? kCorrect : kNothing;
    receive<<<1, kThreads, 0, stream>>>(
        self.own, self.partner, static_cast<char*>(step->target.local),
        static_cast<char*>(step->output.local), source, step->bytes, step->sequence, mode);
  }
  self.last_busy = step->sequence;
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) {
  State* self = static_cast<State*>(state);
  if (self->allocated != nullptr) {
    if (self->opened != nullptr) cudaIpcCloseMemHandle(self->opened);
    cb_barrier(self->context);
    cudaFree(self->allocated);
  }
  delete self;
}
