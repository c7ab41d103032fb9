// The driver's contexts: the thread's stack of them, primary and created ones, flags and limits.

#include <cuda.h>

#include <thread>

#include "check.h"

#define EXPECT_CU(call) EXPECT_EQUAL(call, CUDA_SUCCESS)

static CUcontext current() {
  CUcontext context = nullptr;
  EXPECT_CU(cuCtxGetCurrent(&context));
  return context;
}

static void stack_of_contexts(CUcontext primary, CUcontext created) {
  EXPECT_CU(cuCtxSetCurrent(primary));
  EXPECT_CU(cuCtxPushCurrent(created));
  EXPECT(current() == created);
  EXPECT_CU(cuCtxPushCurrent(primary));
  CUcontext popped = nullptr;
  EXPECT_CU(cuCtxPopCurrent(&popped));
  EXPECT(popped == primary && current() == created);
  EXPECT_CU(cuCtxPopCurrent(nullptr));
  EXPECT(current() == primary);
  CUcontext in_thread = primary;
  std::thread([&] { in_thread = current(); }).join();
  EXPECT(in_thread == nullptr);  // a stack is one thread's own
  EXPECT_CU(cuCtxSetCurrent(nullptr));
  CUdevice device = -1;
  EXPECT_EQUAL(cuCtxGetDevice(&device), CUDA_ERROR_INVALID_CONTEXT);
}

static void limits_and_flags() {
  size_t bytes = 0;
  EXPECT_CU(cuCtxSetLimit(CU_LIMIT_PRINTF_FIFO_SIZE, 2 << 20));
  EXPECT_CU(cuCtxGetLimit(&bytes, CU_LIMIT_PRINTF_FIFO_SIZE));
  EXPECT(bytes >= 2 << 20);
  EXPECT(cuCtxGetLimit(&bytes, static_cast<CUlimit>(99)) != CUDA_SUCCESS);
  EXPECT_CU(cuCtxSetCacheConfig(CU_FUNC_CACHE_PREFER_SHARED));
  int least = -1, greatest = -1;
  EXPECT_CU(cuCtxGetStreamPriorityRange(&least, &greatest));
  EXPECT(greatest < least);
  unsigned version = 0;
  EXPECT_CU(cuCtxGetApiVersion(current(), &version));
  EXPECT(version > 0);
  unsigned long long id = 0, primary_id = 0;
  EXPECT_CU(cuCtxGetId(current(), &id));
  CUcontext primary = nullptr;
  EXPECT_CU(cuDevicePrimaryCtxRetain(&primary, 0));
  EXPECT_CU(cuCtxGetId(primary, &primary_id));
  EXPECT(id != primary_id);
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
  EXPECT_CU(cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                       CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER));
}

int main() {
  EXPECT_CU(cuInit(0));
  CUcontext created = nullptr, primary = nullptr;
  EXPECT_EQUAL(cuCtxCreate(&created, nullptr, 0xff00, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(cuCtxCreate(&created, nullptr, 0, 99), CUDA_ERROR_INVALID_DEVICE);
  EXPECT(current() == nullptr);
  if (!EXPECT_CU(cuCtxCreate(&created, nullptr, CU_CTX_SCHED_SPIN, 0))) return failures();
  EXPECT(current() == created);
  unsigned flags = 0;
  EXPECT_CU(cuCtxGetFlags(&flags));
  EXPECT_EQUAL(flags & CU_CTX_SCHED_MASK, CU_CTX_SCHED_SPIN);
  CUdevice device = -1;
  EXPECT_CU(cuCtxGetDevice(&device));
  EXPECT_EQUAL(device, 0);

  CUdeviceptr memory = 0;
  EXPECT_CU(cuMemAlloc(&memory, 1 << 20));
  EXPECT_CU(cuMemsetD32(memory, 17, 1 << 18));
  int value = 0;
  EXPECT_CU(cuMemcpyDtoH(&value, memory + 400, sizeof value));
  EXPECT_EQUAL(value, 17);
  EXPECT_CU(cuCtxSynchronize());
  limits_and_flags();
  EXPECT_CU(cuMemFree(memory));

  int active = -1;
  EXPECT_CU(cuDevicePrimaryCtxRetain(&primary, 0));
  EXPECT(primary != created);
  EXPECT_CU(cuDevicePrimaryCtxGetState(0, &flags, &active));
  EXPECT_EQUAL(active, 1);
  stack_of_contexts(primary, created);
  EXPECT_CU(cuDevicePrimaryCtxRelease(0));
  EXPECT(cuDevicePrimaryCtxRelease(0) != CUDA_SUCCESS);

  EXPECT_CU(cuCtxSetCurrent(created));
  EXPECT_CU(cuCtxDestroy(created));
  EXPECT(current() == nullptr);
  EXPECT(cuCtxDestroy(created) != CUDA_SUCCESS);
  EXPECT(cuCtxPushCurrent(created) != CUDA_SUCCESS);
  EXPECT_EQUAL(cuMemAlloc(&memory, 64), CUDA_ERROR_INVALID_CONTEXT);
  return failures();
}
