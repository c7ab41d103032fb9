#include <commbench/families/collective.h>
#include <stdio.h>
#include <string.h>

#define MAX_RANKS 8

struct pointers {
  char* data[MAX_RANKS];
};

struct a2a_state {
  int rank;
  int n;
  size_t element_bytes;
  cb_span flags;
  unsigned int epoch;
  cb_span landing;  // blocks from all ranks arrive here
};

// One thread per rank: tell everybody, wait for everybody.
static __global__ void meet(pointers flags, int rank, unsigned int epoch) {
  volatile unsigned int* theirs = (volatile unsigned int*)flags.data[threadIdx.x] + rank;
  volatile unsigned int* mine = (volatile unsigned int*)flags.data[rank] + threadIdx.x;
  __threadfence_system();
  *theirs = epoch;
  while (*mine < epoch) {
  }
  __threadfence_system();
}

static __global__ void scatter(pointers dst, const char* src, size_t block_bytes, int rank) {
  int peer = (rank + blockIdx.y) % gridDim.y;
  char* to = dst.data[peer] + rank * block_bytes;
  const char* from = src + peer * block_bytes;
  size_t stride = (size_t)gridDim.x * blockDim.x;
  size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
  if (((uintptr_t)to % 16 == 0) && ((uintptr_t)from % 16 == 0) && block_bytes % 16 == 0) {
    for (; i < block_bytes / 16; i += stride) ((uint4*)to)[i] = ((const uint4*)from)[i];
  } else {
    for (; i < block_bytes; i += stride) to[i] = from[i];
  }
}

extern "C" cb_status cb_setup(cb_context* ctx, const cb_args* args, void** state) {
  static const size_t sizes[] = {1, 4, 8, 2, 2, 4, 8};
  a2a_state* s = new a2a_state();
  *state = s;
  s->rank = cb_rank(ctx);
  s->n = cb_world_size(ctx);
  s->element_bytes = sizes[args->dtype];
  if (s->n > MAX_RANKS) return CB_ERR_UNSUPPORTED;
  size_t landing_bytes = args->max_count * s->element_bytes;
  cb_status status = cb_sym_alloc(ctx, landing_bytes, &s->landing);
  if (status != CB_OK) return status;
  return cb_sym_alloc(ctx, MAX_RANKS * sizeof(unsigned int), &s->flags);
}

extern "C" cb_status cb_run(void* state, const cb_step* step, cudaStream_t stream) {
  a2a_state* s = (a2a_state*)state;
  if (step->count == 0) return CB_OK;
  pointers out, flags;
  memset(&out, 0, sizeof(out));
  memset(&flags, 0, sizeof(flags));
  for (int r = 0; r < s->n; r++) {
    out.data[r] = (char*)s->landing.peer[r];
    flags.data[r] = (char*)s->flags.peer[r];
  }
  size_t block_bytes = step->count * s->element_bytes;
  size_t blocks = (block_bytes + 4095) / 4096;
  dim3 grid(blocks < 16 ? (unsigned)blocks : 16, s->n);
  meet<<<1, s->n, 0, stream>>>(flags, s->rank, ++s->epoch);
  scatter<<<grid, 256, 0, stream>>>(out, (const char*)step->input.local, block_bytes, s->rank);
  meet<<<1, s->n, 0, stream>>>(flags, s->rank, ++s->epoch);
  cudaMemcpyAsync(step->output.local, s->landing.local, s->n * block_bytes,
                  cudaMemcpyDeviceToDevice, stream);
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* state) { delete (a2a_state*)state; }
