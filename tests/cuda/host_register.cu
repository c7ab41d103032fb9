// Registered memory of the program's own: kernels and copies reach it, the program goes on using it
// at its address, before, while and after it is registered; and what is refused.

#include <cstdlib>
#include <cstring>

#include "check.h"

__global__ void double_values(const int* in, int* out, int count) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) out[at] = in[at] * 2;
}

namespace {

constexpr int kCount = 50000;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr int kBlocks = (kCount + 255) / 256;

void use(int* memory) {
  int* mapped = nullptr;
  EXPECT_OK(cudaHostGetDevicePointer(&mapped, memory, 0));
  for (int at = 0; at < kCount; ++at) EXPECT(memory[at] == at);
  double_values<<<kBlocks, 256>>>(mapped, mapped, kCount);
  EXPECT_OK(cudaDeviceSynchronize());
  bool right = true;
  for (int at = 0; at < kCount; ++at) right = right && memory[at] == 2 * at;
  EXPECT(right);

  // What the host writes, kernels and copies see.
  for (int at = 0; at < kCount; ++at) memory[at] = at + 7;
  int *device, *pinned;
  REQUIRE_OK(cudaMalloc(&device, kBytes));
  REQUIRE_OK(cudaMallocHost(&pinned, kBytes));
  EXPECT_OK(cudaMemcpyAsync(device, memory, kBytes, cudaMemcpyHostToDevice));
  double_values<<<kBlocks, 256>>>(device, device, kCount);
  EXPECT_OK(cudaMemcpyAsync(memory, device, kBytes, cudaMemcpyDeviceToHost));
  EXPECT_OK(cudaDeviceSynchronize());
  right = true;
  for (int at = 0; at < kCount; ++at) right = right && memory[at] == 2 * (at + 7);
  EXPECT(right);
  EXPECT_OK(cudaMemcpy(pinned, memory, kBytes, cudaMemcpyHostToHost));
  EXPECT(memcmp(pinned, memory, kBytes) == 0);
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaFreeHost(pinned));

  cudaPointerAttributes attributes;
  EXPECT_OK(cudaPointerGetAttributes(&attributes, memory + 10));
  EXPECT_EQUAL(attributes.type, cudaMemoryTypeHost);
  EXPECT(attributes.devicePointer == mapped + 10);
  EXPECT(attributes.hostPointer == memory + 10);
  unsigned flags = 0;
  EXPECT_OK(cudaHostGetFlags(&flags, memory));
  EXPECT((flags & cudaHostRegisterMapped) != 0);
}

}  // namespace

int main() {
  int supported = 0, read_only = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrHostRegisterSupported, 0));
  REQUIRE_OK(cudaDeviceGetAttribute(&read_only, cudaDevAttrHostRegisterReadOnlySupported, 0));
  if (supported == 0) return 77;

  // Neither the start nor the end is that of a page.
  char* block = static_cast<char*>(malloc(kBytes + 12288));
  memset(block, 0x31, kBytes + 12288);
  int* memory = reinterpret_cast<int*>(block + 4096 + 64);
  for (int at = 0; at < kCount; ++at) memory[at] = at;
  REQUIRE_OK(cudaHostRegister(memory, kBytes, cudaHostRegisterMapped | cudaHostRegisterPortable));
  use(memory);
  EXPECT_ERROR(cudaHostRegister(memory, kBytes, cudaHostRegisterMapped),
               cudaErrorHostMemoryAlreadyRegistered);
  EXPECT_ERROR(cudaFreeHost(memory), cudaErrorInvalidValue);
  int last = memory[kCount - 1];
  EXPECT_OK(cudaHostUnregister(memory));
  EXPECT_EQUAL(memory[kCount - 1], last);
  EXPECT_EQUAL(block[0], 0x31);
  EXPECT_EQUAL(block[4096 + 64 + kBytes], 0x31);
  memory[0] = 5;
  EXPECT_ERROR(cudaHostUnregister(memory), cudaErrorHostMemoryNotRegistered);

  // Again, after which an ordinary copy works as with any memory.
  REQUIRE_OK(cudaHostRegister(memory, kBytes, cudaHostRegisterDefault));
  EXPECT_EQUAL(memory[0], 5);
  EXPECT_OK(cudaHostUnregister(memory));
  int* device;
  REQUIRE_OK(cudaMalloc(&device, kBytes));
  EXPECT_OK(cudaMemcpy(device, memory, kBytes, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaFree(device));

  EXPECT_ERROR(cudaHostRegister(nullptr, kBytes, 0), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaHostRegister(memory, 0, 0), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaHostRegister(memory, kBytes, 0x100), cudaErrorInvalidValue);
  if (read_only == 0) {
    EXPECT_ERROR(cudaHostRegister(memory, kBytes, cudaHostRegisterReadOnly), cudaErrorNotSupported);
  }
  cudaGetLastError();
  free(block);
  return failures();
}
