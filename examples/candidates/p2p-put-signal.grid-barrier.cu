#include <commbench/families/p2p.h>
#include <cuda/atomic>

// All blocks copy, then meet at a grid-wide barrier, then block 0 signals.

namespace {

constexpr int kThreads = 256;

using DeviceCounter = cuda::atomic_ref<unsigned int, cuda::thread_scope_device>;
using SystemFlag = cuda::atomic_ref<unsigned long long, cuda::thread_scope_system>;

struct State {
  cb_p2p_role role;
  int partner;
  cb_span flag;
  unsigned int* counter;
  unsigned int generation;
};

/// Meets all blocks of the grid; `target` counts the arrivals of all calls so far.
__device__ void grid_barrier(unsigned int* counter, unsigned int target) {
  __syncthreads();
  if (threadIdx.x == 0) {
    DeviceCounter arrived(*counter);
    arrived.fetch_add(1, cuda::std::memory_order_acq_rel);
    while ((int)(arrived.load(cuda::std::memory_order_acquire) - target) < 0) {
    }
  }
  __syncthreads();
}

__global__ void put(char* dst, const char* src, size_t n, unsigned long long* flag,
                    unsigned long long sequence, unsigned int* counter, unsigned int target) {
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (; i < n; i += stride) dst[i] = src[i];
  grid_barrier(counter, target);
  if (blockIdx.x == 0 && threadIdx.x == 0) {
    SystemFlag(*flag).store(sequence, cuda::std::memory_order_release);
  }
}

__global__ void get(char* dst, const char* src, size_t n, unsigned long long* flag,
                    unsigned long long sequence) {
  if (threadIdx.x == 0) {
    while (SystemFlag(*flag).load(cuda::std::memory_order_acquire) < sequence) {
    }
  }
  __syncthreads();
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  size_t stride = (size_t)gridDim.x * blockDim.x;
  for (; i < n; i += stride) dst[i] = src[i];
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  State* s = new State{args->role, args->partner, {}, nullptr, 0};
  *state = s;
  if (cudaMalloc(&s->counter, sizeof(unsigned int)) != cudaSuccess) return CB_ERR_MEMORY;
  if (cudaMemset(s->counter, 0, sizeof(unsigned int)) != cudaSuccess) return CB_ERR_CUDA;
  return cb_sym_alloc(ctx, 128, &s->flag);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->bytes == 0 || s->role == CB_P2P_IDLE) return CB_OK;
  size_t wanted = (step->bytes + kThreads - 1) / kThreads;
  int get_blocks = wanted < 64 ? (int)wanted : 64;
  int blocks = (int)wanted;
  if (s->role == CB_P2P_SENDER) {
    s->generation += blocks;
    put<<<blocks, kThreads, 0, stream>>>(
        (char*)step->target.peer[s->partner], (const char*)step->source.local, step->bytes,
        (unsigned long long*)s->flag.peer[s->partner], step->sequence, s->counter, s->generation);
  } else {
    get<<<get_blocks, kThreads, 0, stream>>>((char*)step->output.local,
                                             (const char*)step->target.local, step->bytes,
                                             (unsigned long long*)s->flag.local, step->sequence);
  }
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) {
  State* s = static_cast<State*>(state);
  cudaFree(s->counter);
  delete s;
}
