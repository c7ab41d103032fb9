#include <commbench/families/collective.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// As many blocks as SMs take tiles of this rank's share from a queue until it is empty. The block
// that finishes last talks to the other ranks.

namespace {

constexpr int kThreads = 256;
constexpr int kMaxRanks = 8;
constexpr size_t kTile = 2048;

struct Pointers {
  void* in[kMaxRanks];
  void* out[kMaxRanks];
  unsigned int* flags[kMaxRanks];
};

struct Queue {
  unsigned long long next_tile;
  unsigned int blocks_done;
};

struct State {
  int rank;
  int world_size;
  int num_sms;
  cb_dtype dtype;
  cb_span flags;
  Queue* queue;
  unsigned int epoch;
};

__device__ float load(const float* p) { return *p; }
__device__ float load(const __half* p) { return __half2float(*p); }
__device__ float load(const __nv_bfloat16* p) { return __bfloat162float(*p); }
__device__ void store(float* p, float x) { *p = x; }
__device__ void store(__half* p, float x) { *p = __float2half_rn(x); }
__device__ void store(__nv_bfloat16* p, float x) { *p = __float2bfloat16_rn(x); }

__device__ void signal(unsigned int* flag, unsigned int epoch) {
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flag), "r"(epoch) : "memory");
}

__device__ void wait(const unsigned int* flag, unsigned int epoch) {
  unsigned int seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(flag) : "memory");
  } while (seen < epoch);
}

template <typename T>
__global__ void two_shot(Pointers p, size_t begin, size_t end, Queue* queue, int rank, int n,
                         unsigned int epoch) {
  __shared__ unsigned long long tile;
  __shared__ bool last;
  // One block says that this rank has started; all blocks wait for all ranks.
  if (threadIdx.x < n) {
    if (blockIdx.x == 0) signal(p.flags[threadIdx.x] + rank, epoch);
    wait(p.flags[rank] + threadIdx.x, epoch);
  }
  __syncthreads();
  for (;;) {
    if (threadIdx.x == 0) tile = atomicAdd(&queue->next_tile, 1ull);
    __syncthreads();
    size_t first = begin + tile * kTile;
    __syncthreads();
    if (first >= end) break;
    size_t stop = min(first + kTile, end);
    for (size_t i = first + threadIdx.x; i < stop; i += kThreads) {
      float sum = 0.0f;
      for (int r = 0; r < n; ++r) sum += load(static_cast<const T*>(p.in[r]) + i);
      for (int r = 0; r < n; ++r) store(static_cast<T*>(p.out[r]) + i, sum);
    }
  }
  // The stores of every block come before its ticket, and the tickets before the signal below.
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence_system();
    last = atomicAdd(&queue->blocks_done, 1u) == gridDim.x - 1;
    __threadfence_system();
  }
  __syncthreads();
  if (!last) return;
  if (threadIdx.x == 0) {
    queue->next_tile = 0;
    queue->blocks_done = 0;
  }
  if (threadIdx.x < n) {
    signal(p.flags[threadIdx.x] + rank, epoch + 1);
    wait(p.flags[rank] + threadIdx.x, epoch + 1);
  }
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  if (cb_world_size(ctx) > kMaxRanks) return CB_ERR_UNSUPPORTED;
  State* s = new State{};
  s->rank = cb_rank(ctx);
  s->world_size = cb_world_size(ctx);
  s->dtype = args->dtype;
  *state = s;
  if (cudaDeviceGetAttribute(&s->num_sms, cudaDevAttrMultiProcessorCount, cb_device(ctx)) !=
          cudaSuccess ||
      cudaMalloc(&s->queue, sizeof(Queue)) != cudaSuccess ||
      cudaMemset(s->queue, 0, sizeof(Queue)) != cudaSuccess) {
    return CB_ERR_CUDA;
  }
  return cb_sym_alloc(ctx, kMaxRanks * sizeof(unsigned int), &s->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->count == 0) return CB_OK;
  Pointers p = {};
  for (int r = 0; r < s->world_size; ++r) {
    p.in[r] = step->input.peer[r];
    p.out[r] = step->output.peer[r];
    p.flags[r] = static_cast<unsigned int*>(s->flags.peer[r]);
  }
  size_t begin = step->count * s->rank / s->world_size;
  size_t end = step->count * (s->rank + 1) / s->world_size;
  unsigned int epoch = s->epoch + 1;
  s->epoch += 2;
  auto start = [&](auto kernel) {
    kernel<<<s->num_sms, kThreads, 0, stream>>>(p, begin, end, s->queue, s->rank, s->world_size,
                                                epoch);
  };
  if (s->dtype == CB_F32) {
    start(two_shot<float>);
  } else if (s->dtype == CB_F16) {
    start(two_shot<__half>);
  } else {
    start(two_shot<__nv_bfloat16>);
  }
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) {
  State* s = static_cast<State*>(state);
  cudaFree(s->queue);
  delete s;
}
