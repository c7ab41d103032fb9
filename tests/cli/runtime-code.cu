#include <commbench/families/p2p.h>
#include <nvrtc.h>

#include <string>

// The kernel is CUDA C++ text, which cb_setup compiles for the device it finds.

static const char kSource[] = R"(
#include <cuda_fp16.h>
extern "C" __global__ void copy(char* dst, const char* src, unsigned long long n) {
  unsigned long long at = blockIdx.x * (unsigned long long)blockDim.x + threadIdx.x;
  for (; at < n; at += (unsigned long long)gridDim.x * blockDim.x) dst[at] = src[at];
}
)";

struct State {
  bool sender;
  int partner;
  cudaLibrary_t library;
  cudaKernel_t kernel;
};

static bool compile(std::string* ptx) {
  nvrtcProgram program;
  if (nvrtcCreateProgram(&program, kSource, "copy.cu", 0, nullptr, nullptr) != NVRTC_SUCCESS) {
    return false;
  }
  const char* options[] = {"--gpu-architecture=compute_90a", "-I/box/cuda/include"};
  size_t bytes = 0;
  bool compiled = nvrtcCompileProgram(program, 2, options) == NVRTC_SUCCESS &&
                  nvrtcGetPTXSize(program, &bytes) == NVRTC_SUCCESS;
  ptx->resize(bytes);
  return compiled && nvrtcGetPTX(program, &(*ptx)[0]) == NVRTC_SUCCESS &&
         nvrtcDestroyProgram(&program) == NVRTC_SUCCESS;
}

extern "C" cb_status cb_setup(cb_context*, const cb_args* args, void** result) {
  State* state = new State{args->role == CB_P2P_SENDER, args->partner, nullptr, nullptr};
  *result = state;
  std::string ptx;
  if (!compile(&ptx)) return CB_ERR_UNSUPPORTED;
  bool loaded = cudaLibraryLoadData(&state->library, ptx.c_str(), nullptr, nullptr, 0, nullptr,
                                    nullptr, 0) == cudaSuccess &&
                cudaLibraryGetKernel(&state->kernel, state->library, "copy") == cudaSuccess;
  return loaded ? CB_OK : CB_ERR_CUDA;
}

extern "C" cb_status cb_run(void* pointer, const cb_step* step, cudaStream_t stream) {
  State* state = static_cast<State*>(pointer);
  if (!state->sender || step->bytes == 0) return CB_OK;
  void* dst = step->target.peer[state->partner];
  const void* src = step->source.local;
  unsigned long long bytes = step->bytes;
  void* parameters[] = {&dst, &src, &bytes};
  return cudaLaunchKernel(reinterpret_cast<void*>(state->kernel), dim3(16), dim3(256), parameters,
                          0, stream) == cudaSuccess
             ? CB_OK
             : CB_ERR_CUDA;
}

extern "C" void cb_teardown(void* pointer) {
  State* state = static_cast<State*>(pointer);
  cudaLibraryUnload(state->library);
  delete state;
}
