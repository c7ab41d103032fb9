// cuGetProcAddress and cudaGetDriverEntryPoint: versions, per-thread forms, and what is not found.

#include <cuda.h>
#include <cudaTypedefs.h>

#include <cstring>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

static void* found(const char* name, int version, cuuint64_t flags,
                   CUdriverProcAddressQueryResult expected) {
  void* function = reinterpret_cast<void*>(1);
  CUdriverProcAddressQueryResult status = CU_GET_PROC_ADDRESS_SUCCESS;
  EXPECT_CU(cuGetProcAddress(name, &function, version, flags, &status));
  EXPECT_EQUAL(status, expected);
  EXPECT_EQUAL(function == nullptr, expected != CU_GET_PROC_ADDRESS_SUCCESS);
  return function;
}

int main() {
  EXPECT_CU(cuInit(0));
  auto init = reinterpret_cast<PFN_cuInit_v2000>(
      found("cuInit", CUDA_VERSION, CU_GET_PROC_ADDRESS_DEFAULT, CU_GET_PROC_ADDRESS_SUCCESS));
  EXPECT_CU(init(0));

  void* newest = found("cuMemAlloc", CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SUCCESS);
  void* oldest = found("cuMemAlloc", 2000, 0, CU_GET_PROC_ADDRESS_SUCCESS);
  EXPECT(newest != oldest);
  EXPECT(newest == found("cuMemAlloc", 3020, 0, CU_GET_PROC_ADDRESS_SUCCESS));
  found("cuNoSuchFunction", CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  found("cuMemAlloc_v2", CUDA_VERSION, 0, CU_GET_PROC_ADDRESS_SYMBOL_NOT_FOUND);
  found("cuMulticastCreate", 11000, 0, CU_GET_PROC_ADDRESS_VERSION_NOT_SUFFICIENT);

  cuuint64_t per_thread = CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM;
  EXPECT(found("cuLaunchKernel", CUDA_VERSION, per_thread, CU_GET_PROC_ADDRESS_SUCCESS) !=
         found("cuLaunchKernel", CUDA_VERSION, CU_GET_PROC_ADDRESS_LEGACY_STREAM,
               CU_GET_PROC_ADDRESS_SUCCESS));
  EXPECT(found("cuMemAlloc", CUDA_VERSION, per_thread, CU_GET_PROC_ADDRESS_SUCCESS) == newest);

  void* function = nullptr;
  EXPECT_CU(cuGetProcAddress("cuNoSuchFunction", &function, CUDA_VERSION, 0, nullptr));
  EXPECT(function == nullptr);
  EXPECT_EQUAL(cuGetProcAddress("cuInit", nullptr, CUDA_VERSION, 0, nullptr),
               CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(cuGetProcAddress(nullptr, &function, CUDA_VERSION, 0, nullptr),
               CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(cuGetProcAddress("cuInit", &function, CUDA_VERSION, 64, nullptr),
               CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(cuGetProcAddress("cuInit", &function, 99000, 0, nullptr), CUDA_ERROR_INVALID_VALUE);

  // As NCCL does it: the first look-up finds the function that finds all others.
  cudaDriverEntryPointQueryResult status;
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuGetProcAddress", &function, 13000,
                                             cudaEnableDefault, &status));
  EXPECT_EQUAL(status, cudaDriverEntryPointSuccess);
  auto get = reinterpret_cast<PFN_cuGetProcAddress_v12000>(function);
  EXPECT_CU(get("cuCtxGetDevice", &function, 2000, 0, nullptr));
  EXPECT(function != nullptr);
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuGetProcAddress", &function, 11030,
                                             cudaEnableDefault, &status));
  auto get_first = reinterpret_cast<PFN_cuGetProcAddress_v11030>(function);
  EXPECT_EQUAL(get_first("cuNoSuchFunction", &function, 11030, 0), CUDA_ERROR_NOT_FOUND);

  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuMulticastCreate", &function, 11000,
                                             cudaEnableDefault, &status));
  EXPECT_EQUAL(status, cudaDriverEntryPointVersionNotSufficent);
  EXPECT_OK(cudaGetDriverEntryPointByVersion("cuNoSuchFunction", &function, 13000,
                                             cudaEnablePerThreadDefaultStream, &status));
  EXPECT_EQUAL(status, cudaDriverEntryPointSymbolNotFound);
  EXPECT(function == nullptr);
  EXPECT_ERROR(
      cudaGetDriverEntryPointByVersion(nullptr, &function, 13000, cudaEnableDefault, &status),
      cudaErrorInvalidValue);
  return failures();
}
