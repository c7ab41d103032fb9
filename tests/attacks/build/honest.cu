// expect: ok
#include <commbench/task.h>

#include <vector>

__global__ void add(float* out, const float* in, int count) {
  int index = blockIdx.x * blockDim.x + threadIdx.x;
  if (index < count) out[index] += in[index];
}

struct cb_step {
  float* out;
  const float* in;
};

cb_status cb_setup(cb_context*, const cb_args*, void** state) {
  *state = new std::vector<int>(3);
  return CB_OK;
}
cb_status cb_run(void*, const cb_step* step, cudaStream_t stream) {
  add<<<1, 32, 0, stream>>>(step->out, step->in, 32);
  return cudaGetLastError() == cudaSuccess ? CB_OK : CB_ERR_CUDA;
}
void cb_teardown(void* state) { delete static_cast<std::vector<int>*>(state); }
