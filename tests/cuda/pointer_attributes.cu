// What a pointer is: device, host, unregistered.

#include "check.h"

int main() {
  int count = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  cudaPointerAttributes attributes;

  int last = count - 1;
  REQUIRE_OK(cudaSetDevice(last));
  char *device, *pinned, host[16];
  REQUIRE_OK(cudaMalloc(&device, 1000));
  REQUIRE_OK(cudaHostAlloc(&pinned, 1000, cudaHostAllocMapped));
  for (size_t offset : {size_t{0}, size_t{999}}) {
    EXPECT_OK(cudaPointerGetAttributes(&attributes, device + offset));
    EXPECT_EQUAL(attributes.type, cudaMemoryTypeDevice);
    EXPECT_EQUAL(attributes.device, last);
    EXPECT(attributes.devicePointer == device + offset);
    EXPECT(attributes.hostPointer == nullptr);
    EXPECT_OK(cudaPointerGetAttributes(&attributes, pinned + offset));
    EXPECT_EQUAL(attributes.type, cudaMemoryTypeHost);
    EXPECT(attributes.hostPointer == pinned + offset);
    EXPECT(attributes.devicePointer != nullptr);
  }
  EXPECT_OK(cudaPointerGetAttributes(&attributes, host));
  EXPECT_EQUAL(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT(attributes.devicePointer == nullptr);

  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaPointerGetAttributes(&attributes, device));
  EXPECT_EQUAL(attributes.type, cudaMemoryTypeUnregistered);
  EXPECT_ERROR(cudaPointerGetAttributes(nullptr, host), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaFreeHost(pinned));
  return failures();
}
