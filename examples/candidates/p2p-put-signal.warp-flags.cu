#include <commbench/families/p2p.h>

// One flag per block, 16-byte accesses where alignment allows, 1024 threads a block.

namespace {

constexpr int kThreads = 1024;
constexpr int kMaxBlocks = 64;

struct State {
  cb_p2p_role role;
  int partner;
  cb_span flags;
};

__device__ void copy_slice(char* dst, const char* src, size_t begin, size_t end) {
  if ((((uintptr_t)(dst + begin) | (uintptr_t)(src + begin)) & 15) == 0) {
    size_t vectors = (end - begin) / 16;
    uint4* out = reinterpret_cast<uint4*>(dst + begin);
    const uint4* in = reinterpret_cast<const uint4*>(src + begin);
#pragma unroll 4
    for (size_t v = threadIdx.x; v < vectors; v += kThreads) out[v] = in[v];
    begin += vectors * 16;
  }
  for (size_t i = begin + threadIdx.x; i < end; i += kThreads) dst[i] = src[i];
}

__device__ size_t slice_begin(size_t n, unsigned block) {
  size_t begin = n * block / gridDim.x / 128 * 128;
  return block == gridDim.x ? n : begin;
}

__global__ void __launch_bounds__(kThreads)
    put(char* dst, const char* src, size_t n, uint64_t* flags, uint64_t sequence) {
  copy_slice(dst, src, slice_begin(n, blockIdx.x), slice_begin(n, blockIdx.x + 1));
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(flags + blockIdx.x * 16), "l"(sequence)
                 : "memory");
  }
}

__global__ void __launch_bounds__(kThreads)
    get(char* dst, const char* src, size_t n, const uint64_t* flags, uint64_t sequence) {
  if (threadIdx.x == 0) {
    uint64_t seen;
    do {
      asm volatile("ld.acquire.sys.global.u64 %0, [%1];"
                   : "=l"(seen)
                   : "l"(flags + blockIdx.x * 16)
                   : "memory");
    } while (seen < sequence);
  }
  __syncthreads();
  copy_slice(dst, src, slice_begin(n, blockIdx.x), slice_begin(n, blockIdx.x + 1));
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  State* s = new State{args->role, args->partner, {}};
  *state = s;
  return cb_sym_alloc(ctx, kMaxBlocks * 128, &s->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->bytes == 0 || s->role == CB_P2P_IDLE) return CB_OK;
  size_t wanted = (step->bytes + 16383) / 16384;
  int blocks = wanted < kMaxBlocks ? static_cast<int>(wanted) : kMaxBlocks;
  if (s->role == CB_P2P_SENDER) {
    put<<<blocks, kThreads, 0, stream>>>(static_cast<char*>(step->target.peer[s->partner]),
                                         static_cast<const char*>(step->source.local), step->bytes,
                                         static_cast<uint64_t*>(s->flags.peer[s->partner]),
                                         step->sequence);
  } else {
    get<<<blocks, kThreads, 0, stream>>>(
        static_cast<char*>(step->output.local), static_cast<const char*>(step->target.local),
        step->bytes, static_cast<const uint64_t*>(s->flags.local), step->sequence);
  }
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete static_cast<State*>(state); }
