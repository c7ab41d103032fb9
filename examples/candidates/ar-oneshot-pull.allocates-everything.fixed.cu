#include <commbench/families/collective.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <vector>

namespace {

constexpr int kThreads = 256;
constexpr int kMaxBlocks = 32;
constexpr int kMaxRanks = 8;
constexpr size_t kFlagBytes = kMaxBlocks * kMaxRanks * sizeof(uint32_t);

struct Peers {
  char* base[kMaxRanks];  // flags, then that rank's staged input
};

struct State {
  int rank;
  int world_size;
  cb_dtype dtype;
  cb_span scratch;
  uint32_t epoch;
  float* sums;
};

template <typename T>
struct Convert;
template <>
struct Convert<float> {
  static __device__ float up(float x) { return x; }
  static __device__ float down(float x) { return x; }
};
template <>
struct Convert<__half> {
  static __device__ float up(__half x) { return __half2float(x); }
  static __device__ __half down(float x) { return __float2half_rn(x); }
};
template <>
struct Convert<__nv_bfloat16> {
  static __device__ float up(__nv_bfloat16 x) { return __bfloat162float(x); }
  static __device__ __nv_bfloat16 down(float x) { return __float2bfloat16_rn(x); }
};

template <typename T>
__device__ T* staged(const Peers& peers, int rank) {
  return reinterpret_cast<T*>(peers.base[rank] + kFlagBytes);
}

__device__ void barrier(const Peers& peers, int rank, int n, uint32_t epoch) {
  __syncthreads();
  if (threadIdx.x < n) {
    uint32_t* flags = reinterpret_cast<uint32_t*>(peers.base[threadIdx.x]);
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(flags + blockIdx.x * kMaxRanks + rank),
                 "r"(epoch)
                 : "memory");
    uint32_t* mine = reinterpret_cast<uint32_t*>(peers.base[rank]);
    uint32_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];"
                   : "=r"(seen)
                   : "l"(mine + blockIdx.x * kMaxRanks + threadIdx.x)
                   : "memory");
    } while (seen < epoch);
  }
  __syncthreads();
}

template <typename T>
__global__ void one_shot(T* out, const T* in, float* sums, size_t count, Peers peers, int rank,
                         int n, uint32_t epoch) {
  size_t first = blockIdx.x * blockDim.x + threadIdx.x;
  size_t stride = gridDim.x * blockDim.x;
  for (size_t i = first; i < count; i += stride) staged<T>(peers, rank)[i] = in[i];
  barrier(peers, rank, n, epoch);
  for (int r = 0; r < n; ++r) {
    const T* theirs = staged<T>(peers, r);
    for (size_t i = first; i < count; i += stride) {
      float x = Convert<T>::up(theirs[i]);
      sums[i] = r == 0 ? x : sums[i] + x;
    }
  }
  for (size_t i = first; i < count; i += stride) out[i] = Convert<T>::down(sums[i]);
  barrier(peers, rank, n, epoch + 1);
}

template <typename T>
void launch(State* s, const cb_step* step, cudaStream_t stream) {
  Peers peers = {};
  for (int r = 0; r < s->world_size; ++r) peers.base[r] = static_cast<char*>(s->scratch.peer[r]);
  size_t wanted = (step->count + kThreads - 1) / kThreads;
  int blocks = wanted < kMaxBlocks ? static_cast<int>(wanted) : kMaxBlocks;
  one_shot<T><<<blocks, kThreads, 0, stream>>>(
      static_cast<T*>(step->output.local), static_cast<const T*>(step->input.local), s->sums,
      step->count, peers, s->rank, s->world_size, s->epoch + 1);
  s->epoch += 2;
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  if (cb_world_size(ctx) > kMaxRanks) return CB_ERR_UNSUPPORTED;
  State* s = new State{};
  s->rank = cb_rank(ctx);
  s->world_size = cb_world_size(ctx);
  s->dtype = args->dtype;
  *state = s;
  if (cudaMalloc(&s->sums, args->max_count * sizeof(float) + 4) != cudaSuccess) {
    return CB_ERR_MEMORY;
  }
  return cb_sym_alloc(ctx, kFlagBytes + args->max_count * 4, &s->scratch);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->count == 0) return CB_OK;
  switch (s->dtype) {
    case CB_F32:
      launch<float>(s, step, stream);
      break;
    case CB_F16:
      launch<__half>(s, step, stream);
      break;
    case CB_BF16:
      launch<__nv_bfloat16>(s, step, stream);
      break;
    default:
      return CB_ERR_UNSUPPORTED;
  }
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) {
  State* s = static_cast<State*>(state);
  cudaFree(s->sums);
  delete s;
}
