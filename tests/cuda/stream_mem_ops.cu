// Stream memory operations: streams that write words and wait for values, written by kernels,
// copies, other streams and the host; their comparisons and errors.

#include <cuda.h>

#include <cstring>

#include "check.h"

__global__ void store(volatile unsigned* word, unsigned value) { *word = value; }
__global__ void copy_word(const unsigned* from, unsigned* to) { *to = *from; }

#define EXPECT_RESULT(call, expected) EXPECT_EQUAL(call, expected)

namespace {

cudaStream_t waiting, writing;
unsigned *words, *pinned;

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

unsigned read(int at) {
  unsigned value = 0;
  EXPECT_OK(cudaMemcpy(&value, words + at, sizeof value, cudaMemcpyDeviceToHost));
  return value;
}

void wait_for_device_words() {
  // A kernel of another stream ends the wait.
  EXPECT_RESULT(cuStreamWaitValue32(waiting, address(words), 5, CU_STREAM_WAIT_VALUE_GEQ),
                CUDA_SUCCESS);
  copy_word<<<1, 1, 0, waiting>>>(words, words + 1);
  EXPECT_ERROR(cudaStreamQuery(waiting), cudaErrorNotReady);
  cudaGetLastError();
  store<<<1, 1, 0, writing>>>(words, 4);
  EXPECT_OK(cudaStreamSynchronize(writing));
  EXPECT_ERROR(cudaStreamQuery(waiting), cudaErrorNotReady);
  cudaGetLastError();
  store<<<1, 1, 0, writing>>>(words, 6);
  EXPECT_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQUAL(read(1), 6);

  // Cyclic: 3 is 5 after 0xfffffffe.
  EXPECT_RESULT(cuStreamWriteValue32(writing, address(words), 3, 0), CUDA_SUCCESS);
  EXPECT_RESULT(cuStreamWaitValue32(writing, address(words), 0xfffffffe, CU_STREAM_WAIT_VALUE_GEQ),
                CUDA_SUCCESS);
  EXPECT_RESULT(cuStreamWaitValue32(writing, address(words), 3, CU_STREAM_WAIT_VALUE_EQ),
                CUDA_SUCCESS);
  EXPECT_RESULT(cuStreamWaitValue32(writing, address(words), 2, CU_STREAM_WAIT_VALUE_AND),
                CUDA_SUCCESS);
  EXPECT_RESULT(cuStreamWaitValue32(writing, address(words), 4, CU_STREAM_WAIT_VALUE_NOR),
                CUDA_SUCCESS);
  EXPECT_OK(cudaStreamSynchronize(writing));

  // A copy ends the wait; 64 bits, which a 32-bit comparison would mistake.
  auto* wide = reinterpret_cast<unsigned long long*>(words + 4);
  unsigned long long large = 1ull << 40;
  EXPECT_RESULT(cuStreamWaitValue64(waiting, address(wide), large, CU_STREAM_WAIT_VALUE_EQ),
                CUDA_SUCCESS);
  EXPECT_RESULT(cuStreamWriteValue32(waiting, address(words + 6), 77, 0), CUDA_SUCCESS);
  EXPECT_OK(cudaMemcpyAsync(wide, &large, sizeof large, cudaMemcpyHostToDevice, writing));
  EXPECT_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQUAL(read(6), 77);
}

void wait_for_mapped_words_and_batches() {
  // The host ends a wait for mapped memory, and sees what a stream writes there.
  void* mapped = nullptr;
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  EXPECT_RESULT(cuStreamWaitValue32(waiting, address(mapped), 9, CU_STREAM_WAIT_VALUE_EQ),
                CUDA_SUCCESS);
  EXPECT_RESULT(cuStreamWriteValue32(waiting, address(mapped) + 4, 21, 0), CUDA_SUCCESS);
  *const_cast<volatile unsigned*>(pinned) = 9;
  EXPECT_OK(cudaStreamSynchronize(waiting));
  EXPECT_EQUAL(*const_cast<volatile unsigned*>(pinned + 1), 21);

  // A batch: one stream hands over to the other and waits for the answer.
  CUstreamBatchMemOpParams ask[3] = {}, answer[2] = {};
  ask[0].operation = CU_STREAM_MEM_OP_WRITE_VALUE_32;
  ask[0].writeValue.address = address(words + 8);
  ask[0].writeValue.value = 1;
  ask[1].operation = CU_STREAM_MEM_OP_BARRIER;
  ask[1].memoryBarrier.flags = CU_STREAM_MEMORY_BARRIER_TYPE_SYS;
  ask[2].operation = CU_STREAM_MEM_OP_WAIT_VALUE_64;
  ask[2].waitValue.address = address(words + 10);
  ask[2].waitValue.value64 = 2;
  answer[0].operation = CU_STREAM_MEM_OP_WAIT_VALUE_32;
  answer[0].waitValue.address = address(words + 8);
  answer[0].waitValue.value = 1;
  answer[0].waitValue.flags = CU_STREAM_WAIT_VALUE_EQ;
  answer[1].operation = CU_STREAM_MEM_OP_WRITE_VALUE_64;
  answer[1].writeValue.address = address(words + 10);
  answer[1].writeValue.value64 = 2;
  EXPECT_RESULT(cuStreamBatchMemOp(waiting, 2, answer, 0), CUDA_SUCCESS);
  EXPECT_RESULT(cuStreamBatchMemOp(writing, 3, ask, 0), CUDA_SUCCESS);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(read(10), 2);
}

void refuse(bool can_flush) {
  CUstreamBatchMemOpParams many[257] = {};
  for (auto& one : many) one.operation = CU_STREAM_MEM_OP_BARRIER;
  EXPECT_RESULT(cuStreamWaitValue32(waiting, address(words) + 2, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_RESULT(cuStreamWriteValue64(waiting, address(words) + 4, 0, 0), CUDA_ERROR_INVALID_VALUE);
  EXPECT_RESULT(cuStreamBatchMemOp(waiting, 257, many, 0), CUDA_ERROR_INVALID_VALUE);
  if (!can_flush) {
    EXPECT_RESULT(cuStreamWaitValue32(waiting, address(words), 0, CU_STREAM_WAIT_VALUE_FLUSH),
                  CUDA_ERROR_NOT_SUPPORTED);
  }
}

}  // namespace

int main() {
  REQUIRE_OK(cudaFree(nullptr));
  int can_64 = 0, can_nor = 0, can_flush = 0;
  CUdevice device;
  cuDeviceGet(&device, 0);
  cuDeviceGetAttribute(&can_64, CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS, device);
  cuDeviceGetAttribute(&can_nor, CU_DEVICE_ATTRIBUTE_CAN_USE_STREAM_WAIT_VALUE_NOR, device);
  cuDeviceGetAttribute(&can_flush, CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES, device);
  if (can_64 == 0 || can_nor == 0) return 77;

  REQUIRE_OK(cudaStreamCreateWithFlags(&waiting, cudaStreamNonBlocking));
  REQUIRE_OK(cudaStreamCreateWithFlags(&writing, cudaStreamNonBlocking));
  REQUIRE_OK(cudaMalloc(&words, 16 * sizeof(unsigned)));
  REQUIRE_OK(cudaMemset(words, 0, 16 * sizeof(unsigned)));
  REQUIRE_OK(cudaHostAlloc(&pinned, 16 * sizeof(unsigned), cudaHostAllocMapped));
  memset(pinned, 0, 16 * sizeof(unsigned));
  REQUIRE_OK(cudaDeviceSynchronize());

  wait_for_device_words();
  wait_for_mapped_words_and_batches();
  refuse(can_flush != 0);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(words));
  EXPECT_OK(cudaFreeHost(pinned));
  return failures();
}
