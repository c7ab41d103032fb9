#include <commbench/families/p2p.h>

namespace {

constexpr int kThreads = 256;

struct State {
  cb_p2p_role role;
  int partner;
  cb_span sync;           // [0]: the flag that the sender raises here
  unsigned int* arrived;  // blocks of the running put that are through
};

__device__ void copy_block(char* dst, const char* src, size_t n) {
  size_t begin = n * blockIdx.x / gridDim.x;
  size_t end = n * (blockIdx.x + 1) / gridDim.x;
  for (size_t i = begin + threadIdx.x; i < end; i += blockDim.x) {
    dst[i] = src[i];
  }
}

__global__ void put_and_signal(char* dst, const char* src, size_t n, unsigned long long* flag,
                               unsigned long long sequence, unsigned int* arrived) {
  copy_block(dst, src, n);
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    unsigned int ticket = atomicAdd(arrived, 1);
    if (ticket == gridDim.x - 1) {
      // Everybody has finished: reset the counter for the next call and tell the receiver.
      *arrived = 0;
      __threadfence();
      asm volatile("st.release.gpu.global.u64 [%0], %1;" ::"l"(flag), "l"(sequence) : "memory");
    }
  }
}

__global__ void wait_and_copy(char* dst, const char* src, size_t n, const unsigned long long* flag,
                              unsigned long long sequence) {
  if (threadIdx.x == 0) {
    unsigned long long seen;
    do {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];" : "=l"(seen) : "l"(flag) : "memory");
    } while (seen < sequence);
  }
  __syncthreads();
  copy_block(dst, src, n);
}

int blocks_for(size_t bytes) {
  size_t blocks = (bytes + 16383) / 16384;
  return blocks < 64 ? (int)blocks : 64;
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  State* s = new State{args->role, args->partner, {}, nullptr};
  *state = s;
  if (cudaMalloc(&s->arrived, sizeof(unsigned int)) != cudaSuccess) return CB_ERR_MEMORY;
  if (cudaMemset(s->arrived, 0, sizeof(unsigned int)) != cudaSuccess) return CB_ERR_CUDA;
  return cb_sym_alloc(ctx, 128, &s->sync);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->bytes == 0 || s->role == CB_P2P_IDLE) return CB_OK;
  int blocks = blocks_for(step->bytes);
  if (s->role == CB_P2P_SENDER) {
    put_and_signal<<<blocks, kThreads, 0, stream>>>(
        (char*)step->target.peer[s->partner], (const char*)step->source.local, step->bytes,
        (unsigned long long*)s->sync.peer[s->partner], step->sequence, s->arrived);
  } else {
    wait_and_copy<<<blocks, kThreads, 0, stream>>>(
        (char*)step->output.local, (const char*)step->target.local, step->bytes,
        (const unsigned long long*)s->sync.local, step->sequence);
  }
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) {
  State* s = static_cast<State*>(state);
  cudaFree(s->arrived);
  delete s;
}
