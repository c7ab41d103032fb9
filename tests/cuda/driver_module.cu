// The driver API: a module from PTX text, its kernels and variables, and the runtime beside it.

#include <cuda.h>

#include <cstring>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

static const char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 factor = 3;
.visible .entry scale(.param .u64 values, .param .u32 count)
{
  .reg .pred %p<2>;
  .reg .b32 %r<6>;
  .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [values];
  ld.param.u32 %r1, [count];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %p1, %r2, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r2, 4;
  add.s64 %rd2, %rd2, %rd3;
  ld.global.u32 %r3, [%rd2];
  ld.global.u32 %r4, [factor];
  mul.lo.s32 %r5, %r3, %r4;
  st.global.u32 [%rd2], %r5;
DONE:
  ret;
}
)";

int main() {
  int count = 0;
  EXPECT_EQUAL(cuDeviceGetCount(&count), CUDA_ERROR_NOT_INITIALIZED);
  EXPECT_CU(cuInit(0));
  EXPECT_CU(cuDeviceGetCount(&count));
  CUdevice device;
  EXPECT_CU(cuDeviceGet(&device, 0));
  EXPECT_EQUAL(cuDeviceGet(&device, count), CUDA_ERROR_INVALID_DEVICE);
  CUdeviceptr memory = 0;
  EXPECT_EQUAL(cuMemAlloc(&memory, 128), CUDA_ERROR_INVALID_CONTEXT);

  CUcontext context = nullptr, current = nullptr;
  EXPECT_CU(cuDevicePrimaryCtxRetain(&context, 0));
  EXPECT_CU(cuCtxSetCurrent(context));
  EXPECT_CU(cuCtxGetCurrent(&current));
  EXPECT(current == context);
  EXPECT_CU(cuMemAlloc(&memory, 32 * sizeof(int)));
  EXPECT_CU(cuMemsetD32(memory, 7, 32));

  CUmodule module = nullptr;
  CUfunction function = nullptr;
  EXPECT(cuModuleLoadData(&module, "not an image") != CUDA_SUCCESS);
  if (!EXPECT_CU(cuModuleLoadData(&module, kPtx))) return failures();
  EXPECT_EQUAL(cuModuleGetFunction(&function, module, "missing"), CUDA_ERROR_NOT_FOUND);
  EXPECT_CU(cuModuleGetFunction(&function, module, "scale"));
  CUdeviceptr factor = 0;
  size_t bytes = 0;
  EXPECT_CU(cuModuleGetGlobal(&factor, &bytes, module, "factor"));
  EXPECT_EQUAL(bytes, 4);
  int values_count = 20;
  void* args[] = {&memory, &values_count};
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, args, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  int values[32];
  EXPECT_CU(cuMemcpyDtoH(values, memory, sizeof values));
  EXPECT_EQUAL(values[19], 21);
  EXPECT_EQUAL(values[20], 7);

  int new_factor = -2;
  EXPECT_CU(cuMemcpyHtoD(factor, &new_factor, sizeof new_factor));
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, nullptr, args, nullptr));
  // The runtime works in the same context, with the same handles.
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(
      cudaMemcpy(values, reinterpret_cast<void*>(memory), sizeof values, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(values[0], -42);

  CUdeviceptr base = 0;
  EXPECT_CU(cuMemGetAddressRange(&base, &bytes, memory + 17));
  EXPECT_EQUAL(base, memory);
  EXPECT_EQUAL(bytes, 32 * sizeof(int));
  unsigned type = 0;
  EXPECT_CU(cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory));
  EXPECT_EQUAL(type, CU_MEMORYTYPE_DEVICE);
  int threads = 0;
  EXPECT_CU(cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function));
  EXPECT_EQUAL(threads, 1024);

  void* entry = nullptr;
  cudaDriverEntryPointQueryResult found;
  EXPECT_OK(
      cudaGetDriverEntryPointByVersion("cuMemFree", &entry, 12000, cudaEnableDefault, &found));
  EXPECT_EQUAL(found, cudaDriverEntryPointSuccess);
  using Free = CUresult(CUdeviceptr);
  EXPECT_CU(reinterpret_cast<Free*>(entry)(memory));
  const char* text = nullptr;
  EXPECT_CU(cuGetErrorString(CUDA_ERROR_INVALID_VALUE, &text));
  EXPECT(text != nullptr && strcmp(text, "invalid argument") == 0);
  EXPECT_CU(cuModuleUnload(module));
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
  return failures();
}
