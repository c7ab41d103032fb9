// CUlibrary and CUkernel: no context is needed to load, one kernel serves all devices.

#include <cuda.h>

#include <cstring>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

static const char kPtx[] = R"(
.version 8.0
.target sm_80
.address_size 64
.visible .global .align 8 .u64 counter = 7;
.visible .entry first(.param .u64 place, .param .u32 value)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<2>;
  ld.param.u64 %rd1, [place];
  ld.param.u32 %r1, [value];
  st.global.u32 [%rd1], %r1;
  ret;
}
.visible .entry second() { ret; }
)";

int main() {
  EXPECT_CU(cuInit(0));
  CUlibrary library = nullptr;
  if (!EXPECT_CU(cuLibraryLoadData(&library, kPtx, nullptr, nullptr, 0, nullptr, nullptr, 0))) {
    return failures();
  }
  CUkernel kernel = nullptr;
  EXPECT_CU(cuLibraryGetKernel(&kernel, library, "first"));
  CUkernel none = nullptr;
  EXPECT_EQUAL(cuLibraryGetKernel(&none, library, "third"), CUDA_ERROR_NOT_FOUND);
  unsigned count = 0;
  EXPECT_CU(cuLibraryGetKernelCount(&count, library));
  EXPECT_EQUAL(count, 2);

  CUcontext context = nullptr;
  EXPECT_CU(cuDevicePrimaryCtxRetain(&context, 0));
  EXPECT_CU(cuCtxSetCurrent(context));
  CUkernel kernels[2] = {};
  EXPECT_CU(cuLibraryEnumerateKernels(kernels, 2, library));
  EXPECT((kernels[0] == kernel) != (kernels[1] == kernel));
  CUlibrary owner = nullptr;
  EXPECT_CU(cuKernelGetLibrary(&owner, kernel));
  EXPECT(owner == library);
  const char* name = nullptr;
  EXPECT_CU(cuKernelGetName(&name, kernel));
  EXPECT(name != nullptr && strcmp(name, "first") == 0);
  size_t offset = 0, bytes = 0;
  EXPECT_CU(cuKernelGetParamInfo(kernel, 1, &offset, &bytes));
  EXPECT_EQUAL(offset, 8);
  EXPECT_EQUAL(bytes, 4);
  EXPECT_EQUAL(cuKernelGetParamInfo(kernel, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
  int threads = 0;
  EXPECT_CU(cuKernelGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, kernel, 0));
  EXPECT_EQUAL(threads, 1024);
  EXPECT_CU(
      cuKernelSetAttribute(CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 65536, kernel, 0));

  CUfunction function = nullptr, same = nullptr;
  CUmodule module = nullptr;
  EXPECT_CU(cuKernelGetFunction(&function, kernel));
  EXPECT_CU(cuLibraryGetModule(&module, library));
  EXPECT_CU(cuModuleGetFunction(&same, module, "first"));
  int* place = nullptr;
  EXPECT_CU(cuMemAllocHost(reinterpret_cast<void**>(&place), 4));
  int value = 11;
  void* args[] = {&place, &value};
  EXPECT_CU(cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 65536, nullptr, args, nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQUAL(*place, 11);
  value = 12;  // a CUkernel is launched as it is, too
  EXPECT_CU(cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), 1, 1, 1, 1, 1, 1, 0, nullptr, args,
                           nullptr));
  EXPECT_CU(cuCtxSynchronize());
  EXPECT_EQUAL(*place, 12);

  CUdeviceptr counter = 0;
  EXPECT_CU(cuLibraryGetGlobal(&counter, &bytes, library, "counter"));
  EXPECT_EQUAL(bytes, 8);
  unsigned long long content = 0;
  EXPECT_CU(cuMemcpyDtoH(&content, counter, sizeof content));
  EXPECT_EQUAL(content, 7);
  EXPECT_EQUAL(cuLibraryGetGlobal(&counter, &bytes, library, "nothing"), CUDA_ERROR_NOT_FOUND);

  EXPECT_CU(cuLibraryUnload(library));
  EXPECT(cuLibraryUnload(nullptr) != CUDA_SUCCESS);
  EXPECT(cuLibraryLoadData(&library, "nothing", nullptr, nullptr, 0, nullptr, nullptr, 0) !=
         CUDA_SUCCESS);
  EXPECT_EQUAL(
      cuLibraryLoadFromFile(&library, "/nonexistent", nullptr, nullptr, 0, nullptr, nullptr, 0),
      CUDA_ERROR_FILE_NOT_FOUND);
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
  return failures();
}
