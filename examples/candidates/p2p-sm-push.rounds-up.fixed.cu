#include <commbench/families/p2p.h>
#include <stdlib.h>

typedef struct {
  int is_sender;
  int partner;
} push_state;

static __global__ void push_kernel(unsigned char* dst, const unsigned char* src, size_t n) {
  size_t tid = blockIdx.x * (size_t)blockDim.x + threadIdx.x;
  size_t nthreads = gridDim.x * (size_t)blockDim.x;
  if ((((uintptr_t)dst | (uintptr_t)src) & 15) == 0) {
    size_t nvec = n / 16;
    for (size_t i = tid; i < nvec; i += nthreads) ((uint4*)dst)[i] = ((const uint4*)src)[i];
    for (size_t i = nvec * 16 + tid; i < n; i += nthreads) dst[i] = src[i];
  } else {
    for (size_t i = tid; i < n; i += nthreads) dst[i] = src[i];
  }
}

extern "C" cb_status cb_setup(cb_context* context, const cb_args* args, void** state) {
  (void)context;
  push_state* s = (push_state*)calloc(1, sizeof(push_state));
  s->is_sender = args->role == CB_P2P_SENDER;
  s->partner = args->partner;
  *state = s;
  return CB_OK;
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  push_state* s = (push_state*)state;
  if (!s->is_sender || step->bytes == 0) return CB_OK;
  unsigned char* dst = (unsigned char*)step->target.peer[s->partner];
  const unsigned char* src = (const unsigned char*)step->source.local;
  size_t wanted = (step->bytes + 4095) / 4096;
  unsigned blocks = wanted < 128 ? (unsigned)wanted : 128;
  push_kernel<<<blocks, 256, 0, stream>>>(dst, src, step->bytes);
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { free(state); }
