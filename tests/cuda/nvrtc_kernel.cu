// NVRTC: CUDA C++ compiled at run time to PTX, loaded through the driver and the runtime; its
// errors; machine code is loaded where it can be executed, and refused by its error where it
// cannot.

#include <cuda.h>
#include <nvrtc.h>

#include <cstring>
#include <string>
#include <vector>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)
#define EXPECT_RTC(call) EXPECT_EQUAL(call, NVRTC_SUCCESS)

static const char kSource[] = R"(
template <int kFactor>
__global__ void scale(int* values, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) values[at] *= kFactor + SUMMAND;
}
)";

static std::string architecture(const char* kind) {
  cudaDeviceProp device;
  REQUIRE_OK(cudaGetDeviceProperties(&device, 0));
  return std::string("--gpu-architecture=") + kind + "_" + std::to_string(device.major) +
         std::to_string(device.minor);
}

/// Runs the kernel on 100 values, of which 90 are to be scaled by `factor`.
static void check_kernel(CUfunction kernel, int factor) {
  int* values = nullptr;
  REQUIRE_OK(cudaMallocHost(&values, 100 * sizeof(int)));
  for (int i = 0; i < 100; ++i) values[i] = i;
  int count = 90;
  void* args[] = {&values, &count};
  EXPECT_CU(cuLaunchKernel(kernel, 4, 1, 1, 32, 1, 1, 0, nullptr, args, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 100; ++i) EXPECT_EQUAL(values[i], i < count ? i * factor : i);
  EXPECT_OK(cudaFreeHost(values));
}

int main() {
  int major = 0, minor = 0;
  EXPECT_RTC(nvrtcVersion(&major, &minor));
  EXPECT_EQUAL(major, CUDA_VERSION / 1000);
  REQUIRE_OK(cudaFree(nullptr));

  nvrtcProgram program = nullptr;
  EXPECT_RTC(nvrtcCreateProgram(&program, kSource, "scale.cu", 0, nullptr, nullptr));
  EXPECT_RTC(nvrtcAddNameExpression(program, "scale<3>"));
  std::string virtual_architecture = architecture("compute");
  const char* options[] = {virtual_architecture.c_str(), "-DSUMMAND=2", "--std=c++17"};
  if (!EXPECT_RTC(nvrtcCompileProgram(program, 3, options))) {
    size_t bytes = 0;
    nvrtcGetProgramLogSize(program, &bytes);
    std::vector<char> log(bytes + 1);
    nvrtcGetProgramLog(program, log.data());
    fprintf(stderr, "%s\n", log.data());
    return failures();
  }
  const char* name = nullptr;
  EXPECT_RTC(nvrtcGetLoweredName(program, "scale<3>", &name));
  size_t bytes = 0;
  EXPECT_RTC(nvrtcGetPTXSize(program, &bytes));
  std::string ptx(bytes, '\0');
  EXPECT_RTC(nvrtcGetPTX(program, ptx.data()));

  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT_CU(cuModuleLoadData(&module, ptx.c_str()));
  EXPECT_CU(cuModuleGetFunction(&function, module, name));
  check_kernel(function, 5);
  EXPECT_CU(cuModuleUnload(module));
  cudaLibrary_t library = nullptr;
  cudaKernel_t kernel = nullptr;
  EXPECT_OK(cudaLibraryLoadData(&library, ptx.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0));
  EXPECT_OK(cudaLibraryGetKernel(&kernel, library, name));
  check_kernel(reinterpret_cast<CUfunction>(kernel), 5);
  EXPECT_OK(cudaLibraryUnload(library));
  EXPECT_RTC(nvrtcDestroyProgram(&program));

  EXPECT_RTC(nvrtcCreateProgram(&program, "__global__ void k() { nonsense; }", nullptr, 0, nullptr,
                                nullptr));
  EXPECT_EQUAL(nvrtcCompileProgram(program, 1, options), NVRTC_ERROR_COMPILATION);
  EXPECT_RTC(nvrtcGetProgramLogSize(program, &bytes));
  EXPECT(bytes > 1);
  EXPECT_RTC(nvrtcDestroyProgram(&program));

  // Machine code: hardware takes it; where there is none to execute it, the error says so.
  EXPECT_RTC(nvrtcCreateProgram(&program, kSource, "scale.cu", 0, nullptr, nullptr));
  EXPECT_RTC(nvrtcAddNameExpression(program, "scale<3>"));
  std::string real_architecture = architecture("sm");
  options[0] = real_architecture.c_str();
  EXPECT_RTC(nvrtcCompileProgram(program, 3, options));
  EXPECT_RTC(nvrtcGetCUBINSize(program, &bytes));
  std::vector<char> cubin(bytes);
  EXPECT_RTC(nvrtcGetCUBIN(program, cubin.data()));
  CUresult result = cuModuleLoadData(&module, cubin.data());
  EXPECT(result == CUDA_SUCCESS || result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  EXPECT_RTC(nvrtcDestroyProgram(&program));
  return failures();
}
