#include <commbench/families/collective.h>
#include <cooperative_groups.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

// Reduce to rank 0, then everybody fetches the result. Grid-wide barriers come from cooperative
// groups, barriers between ranks from flags.

namespace cg = cooperative_groups;

namespace {

constexpr int kThreads = 256;
constexpr int kBlocks = 32;
constexpr int kMaxRanks = 8;
constexpr size_t kFlagBytes = 512;

struct Pointers {
  const void* in[kMaxRanks];
  char* scratch[kMaxRanks];  // flags, then the result on rank 0
};

struct State {
  int rank;
  int world_size;
  cb_dtype dtype;
  cb_span scratch;
  unsigned int epoch;
};

__device__ float load(const float* p) { return *p; }
__device__ float load(const __half* p) { return __half2float(*p); }
__device__ float load(const __nv_bfloat16* p) { return __bfloat162float(*p); }
__device__ void store(float* p, float x) { *p = x; }
__device__ void store(__half* p, float x) { *p = __float2half_rn(x); }
__device__ void store(__nv_bfloat16* p, float x) { *p = __float2bfloat16_rn(x); }

__device__ void all_ranks_barrier(const Pointers& p, int rank, int n, unsigned int epoch) {
  cg::grid_group grid = cg::this_grid();
  grid.sync();
  if (blockIdx.x == 0 && threadIdx.x < n) {
    __threadfence_system();
    unsigned int* theirs = reinterpret_cast<unsigned int*>(p.scratch[threadIdx.x]) + rank;
    unsigned int* mine = reinterpret_cast<unsigned int*>(p.scratch[rank]) + threadIdx.x;
    asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(epoch) : "memory");
    unsigned int seen;
    do {
      asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
    } while (seen < epoch);
    __threadfence_system();
  }
  grid.sync();
}

template <typename T>
__global__ void two_shot(T* out, size_t count, Pointers p, int rank, int n, unsigned int epoch) {
  cg::grid_group grid = cg::this_grid();
  T* result = reinterpret_cast<T*>(p.scratch[0] + kFlagBytes);
  all_ranks_barrier(p, rank, n, epoch);
  if (rank == 0) {
    for (size_t i = grid.thread_rank(); i < count; i += grid.size()) {
      float sum = 0.0f;
      for (int r = 0; r < n; ++r) sum += load(static_cast<const T*>(p.in[r]) + i);
      store(result + i, sum);
    }
  }
  all_ranks_barrier(p, rank, n, epoch);
  for (size_t i = grid.thread_rank(); i < count; i += grid.size()) out[i] = result[i];
}

template <typename T>
cudaError_t launch(State* s, const cb_step* step, cudaStream_t stream) {
  Pointers p = {};
  for (int r = 0; r < s->world_size; ++r) {
    p.in[r] = step->input.peer[r];
    p.scratch[r] = static_cast<char*>(s->scratch.peer[r]);
  }
  T* out = static_cast<T*>(step->output.local);
  size_t count = step->count;
  unsigned int epoch = s->epoch + 1;
  s->epoch += 2;
  void* params[] = {&out, &count, &p, &s->rank, &s->world_size, &epoch};
  return cudaLaunchCooperativeKernel((void*)two_shot<T>, dim3(kBlocks), dim3(kThreads), params, 0,
                                     stream);
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  if (cb_world_size(ctx) > kMaxRanks) return CB_ERR_UNSUPPORTED;
  State* s = new State{cb_rank(ctx), cb_world_size(ctx), args->dtype, {}, 0};
  *state = s;
  return cb_sym_alloc(ctx, kFlagBytes + args->max_count * 4, &s->scratch);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->count == 0) return CB_OK;
  cudaError_t e;
  switch (s->dtype) {
    case CB_F32:
      e = launch<float>(s, step, stream);
      break;
    case CB_F16:
      e = launch<__half>(s, step, stream);
      break;
    default:
      e = launch<__nv_bfloat16>(s, step, stream);
      break;
  }
  return e == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
