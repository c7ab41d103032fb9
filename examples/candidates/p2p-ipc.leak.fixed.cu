#include <commbench/families/p2p.h>

#include <vector>

#define CHECK(call)                                \
  do {                                             \
    if ((call) != cudaSuccess) return CB_ERR_CUDA; \
  } while (0)

namespace {

constexpr int kBlocks = 16;
constexpr int kThreads = 256;

// Every rank owns one allocation: a flag per block, written by the partner, then the staging area.
constexpr size_t kStagingOffset = 4096;

struct State {
  cb_context* ctx;
  cb_p2p_role role;
  char* mine;
  char* theirs;
  uint64_t last_sequence;
};

struct Exchange {
  cudaIpcMemHandle_t memory;
};

__device__ uint64_t* flag_of(char* allocation) {
  return reinterpret_cast<uint64_t*>(allocation) + blockIdx.x;
}

__device__ void raise(uint64_t* flag, uint64_t value) {
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

__device__ void copy(char* dst, const char* src, size_t n) {
  for (size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) {
    dst[i] = src[i];
  }
}

// The receiver has read the staging area of the call before when its flag says so.
__global__ void stage(char* mine, char* theirs, const char* source, size_t n, uint64_t previous,
                      uint64_t sequence) {
  wait_for(flag_of(mine), previous);
  copy(mine + kStagingOffset, source, n);
  raise(flag_of(theirs), sequence);
}

__global__ void pull(char* mine, char* theirs, char* target, size_t n, uint64_t sequence) {
  wait_for(flag_of(mine), sequence);
  copy(target, theirs + kStagingOffset, n);
  raise(flag_of(theirs), sequence);
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  State* s = new State{};
  s->ctx = ctx;
  s->role = args->role;
  *state = s;
  CHECK(cudaMalloc(&s->mine, kStagingOffset + args->max_bytes));
  CHECK(cudaMemset(s->mine, 0, kStagingOffset));
  CHECK(cudaDeviceSynchronize());

  Exchange out = {};
  CHECK(cudaIpcGetMemHandle(&out.memory, s->mine));
  std::vector<Exchange> all(cb_world_size(ctx));
  cb_status status = cb_allgather(ctx, &out, all.data(), sizeof(out));
  if (status != CB_OK || args->partner < 0) return status;
  const Exchange& partner = all[args->partner];
  void* opened = nullptr;
  CHECK(cudaIpcOpenMemHandle(&opened, partner.memory, cudaIpcMemLazyEnablePeerAccess));
  s->theirs = static_cast<char*>(opened);
  return CB_OK;
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->bytes == 0 || s->role == CB_P2P_IDLE) return CB_OK;
  if (s->role == CB_P2P_SENDER) {
    stage<<<kBlocks, kThreads, 0, stream>>>(s->mine, s->theirs,
                                            static_cast<const char*>(step->source.local),
                                            step->bytes, s->last_sequence, step->sequence);
  } else {
    pull<<<kBlocks, kThreads, 0, stream>>>(
        s->mine, s->theirs, static_cast<char*>(step->target.local), step->bytes, step->sequence);
  }
  s->last_sequence = step->sequence;
  CHECK(cudaGetLastError());
  return CB_OK;
}

extern "C" void cb_teardown(void* state) {
  State* s = static_cast<State*>(state);
  if (s->theirs != nullptr) cudaIpcCloseMemHandle(s->theirs);
  cb_barrier(s->ctx);
  cudaFree(s->mine);
  delete s;
}
