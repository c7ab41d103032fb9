// cudaLibrary_t and cudaKernel_t, and the way from a kernel of the program to its handles.

#include <cstring>

#include "check.h"

static const char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 seed = 5;
.visible .entry read_seed(.param .u64 place)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [place];
  ld.global.u32 %r1, [seed];
  st.global.u32 [%rd1], %r1;
  ret;
}
)";

__global__ void own_kernel(int* place) { *place = 77; }

int main() {
  cudaLibrary_t library = nullptr;
  char log[512] = "";
  cudaJitOption options[] = {cudaJitErrorLogBuffer, cudaJitErrorLogBufferSizeBytes};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  REQUIRE_OK(cudaLibraryLoadData(&library, kPtx, options, values, 2, nullptr, nullptr, 0));
  cudaKernel_t kernel = nullptr;
  REQUIRE_OK(cudaLibraryGetKernel(&kernel, library, "read_seed"));
  EXPECT_ERROR(cudaLibraryGetKernel(&kernel, library, "missing"), cudaErrorSymbolNotFound);
  REQUIRE_OK(cudaLibraryGetKernel(&kernel, library, "read_seed"));
  unsigned count = 0;
  EXPECT_OK(cudaLibraryGetKernelCount(&count, library));
  EXPECT_EQUAL(count, 1);
  cudaKernel_t listed = nullptr;
  EXPECT_OK(cudaLibraryEnumerateKernels(&listed, 1, library));
  EXPECT(listed == kernel);
  EXPECT_OK(cudaKernelSetAttributeForDevice(kernel, cudaFuncAttributePreferredSharedMemoryCarveout,
                                            50, 0));

  int* place = nullptr;
  REQUIRE_OK(cudaMallocHost(&place, sizeof *place));
  void* args[] = {&place};
  EXPECT_OK(cudaLaunchKernel(reinterpret_cast<void*>(kernel), dim3(1), dim3(1), args, 0, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(*place, 5);
  void* seed = nullptr;
  size_t bytes = 0;
  EXPECT_OK(cudaLibraryGetGlobal(&seed, &bytes, library, "seed"));
  EXPECT_EQUAL(bytes, 4);
  int new_seed = -6;
  EXPECT_OK(cudaMemcpy(seed, &new_seed, sizeof new_seed, cudaMemcpyHostToDevice));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  EXPECT_OK(cudaLaunchKernelExC(&config, reinterpret_cast<void*>(kernel), args));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(*place, -6);
  EXPECT_ERROR(cudaLibraryGetGlobal(&seed, &bytes, library, "missing"), cudaErrorSymbolNotFound);
  EXPECT_OK(cudaLibraryUnload(library));

  const char bad[] = ".version 8.0\n.target sm_80\n.address_size 64\n.entry k() { bra nowhere; }\n";
  values[1] = reinterpret_cast<void*>(sizeof log);  // the length of the log was put here
  EXPECT_ERROR(cudaLibraryLoadData(&library, bad, options, values, 2, nullptr, nullptr, 0),
               cudaErrorInvalidPtx);
  EXPECT(strlen(log) > 0);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidPtx);

  cudaFunction_t function = nullptr;
  EXPECT_OK(cudaGetFuncBySymbol(&function, reinterpret_cast<void*>(own_kernel)));
  EXPECT(function != nullptr);
  EXPECT_OK(cudaGetKernel(&kernel, reinterpret_cast<void*>(own_kernel)));
  EXPECT_OK(cudaLaunchKernel(reinterpret_cast<void*>(kernel), dim3(1), dim3(1), args, 0, nullptr));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(*place, 77);
  EXPECT_ERROR(cudaGetFuncBySymbol(&function, &library), cudaErrorInvalidDeviceFunction);
  return failures();
}
