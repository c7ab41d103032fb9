#include <commbench/families/collective.h>

// Copy engines instead of kernels: even peers on one stream, odd peers on another, both joined to
// the caller's stream by events. Small kernels before and after keep the ranks together.

namespace {

struct Flags {
  unsigned int* at[8];
};

struct State {
  int rank, world_size;
  size_t element_bytes;
  cb_span flags;
  unsigned int epoch;
  cudaStream_t side[2];
  cudaEvent_t started, finished[2];
};

// One thread per rank.
__global__ void meet(Flags flags, int rank, unsigned int epoch) {
  unsigned int* theirs = flags.at[threadIdx.x] + rank;
  unsigned int* mine = flags.at[rank] + threadIdx.x;
  __threadfence_system();
  asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(epoch) : "memory");
  unsigned int seen;
  do {
    asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(mine) : "memory");
  } while (seen < epoch);
}

}  // namespace

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  static const size_t element_bytes[] = {1, 4, 8, 2, 2, 4, 8};
  if (cb_world_size(ctx) > 8) return CB_ERR_UNSUPPORTED;
  State* s = new State{};
  *state = s;
  s->rank = cb_rank(ctx);
  s->world_size = cb_world_size(ctx);
  s->element_bytes = element_bytes[args->dtype];
  cudaError_t e = cudaEventCreateWithFlags(&s->started, cudaEventDisableTiming);
  for (int i = 0; i < 2 && e == cudaSuccess; ++i) {
    e = cudaStreamCreateWithFlags(&s->side[i], cudaStreamNonBlocking);
    if (e == cudaSuccess) e = cudaEventCreateWithFlags(&s->finished[i], cudaEventDisableTiming);
  }
  if (e != cudaSuccess) return CB_ERR_CUDA;
  return cb_sym_alloc(ctx, 8 * sizeof(unsigned int), &s->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  State* s = static_cast<State*>(state);
  if (step->count == 0) return CB_OK;
  Flags flags = {};
  for (int r = 0; r < s->world_size; ++r) flags.at[r] = (unsigned int*)s->flags.peer[r];
  size_t bytes = step->count * s->element_bytes;
  meet<<<1, s->world_size, 0, stream>>>(flags, s->rank, ++s->epoch);
  cudaEventRecord(s->started, stream);
  for (int i = 0; i < 2; ++i) cudaStreamWaitEvent(s->side[i], s->started, 0);
  for (int i = 0; i < s->world_size; ++i) {
    int peer = (s->rank + i) % s->world_size;
    if (peer == s->rank && step->in_place) continue;
    cudaMemcpyAsync((char*)step->output.peer[peer] + s->rank * bytes, step->input.local, bytes,
                    cudaMemcpyDeviceToDevice, s->side[peer % 2]);
  }
  for (int i = 0; i < 2; ++i) {
    cudaEventRecord(s->finished[i], s->side[i]);
    cudaStreamWaitEvent(stream, s->finished[i], 0);
  }
  meet<<<1, s->world_size, 0, stream>>>(flags, s->rank, ++s->epoch);
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) {
  State* s = static_cast<State*>(state);
  for (int i = 0; i < 2; ++i) {
    cudaStreamDestroy(s->side[i]);
    cudaEventDestroy(s->finished[i]);
  }
  cudaEventDestroy(s->started);
  delete s;
}
