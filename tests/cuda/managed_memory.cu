// Managed memory: host and device see one memory; prefetches, advice and what ranges say of them;
// and what is refused.

#include "check.h"

__global__ void add(int* values, int count, int amount) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < count) values[at] += amount;
}

namespace {

constexpr int kCount = 1 << 20;
constexpr size_t kBytes = kCount * sizeof(int);
constexpr int kBlocks = kCount / 256;

int range_value(cudaMemRangeAttribute attribute, const void* memory) {
  int value = -100;
  EXPECT_OK(cudaMemRangeGetAttribute(&value, sizeof value, attribute, memory, kBytes));
  return value;
}

bool holds(const int* values, int offset) {
  for (int at = 0; at < kCount; ++at) {
    if (values[at] != at + offset) return false;
  }
  return true;
}

void advise(int* values, cudaMemLocation device, cudaMemLocation host) {
  EXPECT_EQUAL(range_value(cudaMemRangeAttributeReadMostly, values), 0);
  EXPECT_EQUAL(range_value(cudaMemRangeAttributePreferredLocation, values), cudaInvalidDeviceId);
  EXPECT_OK(cudaMemAdvise(values, kBytes, cudaMemAdviseSetReadMostly, device));
  EXPECT_OK(cudaMemAdvise(values, kBytes, cudaMemAdviseSetPreferredLocation, device));
  EXPECT_OK(cudaMemAdvise(values, kBytes, cudaMemAdviseSetAccessedBy, host));
  EXPECT_EQUAL(range_value(cudaMemRangeAttributeReadMostly, values), 1);
  EXPECT_EQUAL(range_value(cudaMemRangeAttributePreferredLocation, values), 0);
  int accessed_by[2] = {};
  EXPECT_OK(cudaMemRangeGetAttribute(accessed_by, sizeof accessed_by,
                                     cudaMemRangeAttributeAccessedBy, values, kBytes));
  EXPECT_EQUAL(accessed_by[0], cudaCpuDeviceId);
  EXPECT_EQUAL(accessed_by[1], cudaInvalidDeviceId);
  EXPECT_OK(cudaMemAdvise(values, kBytes, cudaMemAdviseUnsetReadMostly, device));
  EXPECT_OK(cudaMemAdvise(values, kBytes, cudaMemAdviseUnsetPreferredLocation, device));
  EXPECT_EQUAL(range_value(cudaMemRangeAttributeReadMostly, values), 0);
}

}  // namespace

int main() {
  int concurrent = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&concurrent, cudaDevAttrConcurrentManagedAccess, 0));
  if (concurrent == 0) return 77;
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreate(&stream));
  int* values;
  REQUIRE_OK(cudaMallocManaged(&values, kBytes));
  for (int at = 0; at < kCount; ++at) values[at] = at;
  add<<<kBlocks, 256, 0, stream>>>(values, kCount, 3);
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(holds(values, 3));

  cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
  EXPECT_OK(cudaMemPrefetchAsync(values, kBytes, device, 0, stream));
  add<<<kBlocks, 256, 0, stream>>>(values, kCount, 4);
  EXPECT_OK(cudaMemPrefetchAsync(values, kBytes, host, 0, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(holds(values, 7));
  EXPECT_EQUAL(range_value(cudaMemRangeAttributeLastPrefetchLocation, values), cudaCpuDeviceId);
  advise(values, device, host);

  // Copies and fills treat it as any memory; the kind may be the default one.
  int* copy;
  REQUIRE_OK(cudaMalloc(&copy, kBytes));
  EXPECT_OK(cudaMemcpy(copy, values, kBytes, cudaMemcpyDefault));
  EXPECT_OK(cudaMemset(values, 0, kBytes));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_EQUAL(values[kCount - 1], 0);
  EXPECT_OK(cudaMemcpy(values, copy, kBytes, cudaMemcpyDeviceToDevice));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT(holds(values, 7));
  EXPECT_OK(cudaFree(copy));

  cudaPointerAttributes attributes;
  EXPECT_OK(cudaPointerGetAttributes(&attributes, values));
  EXPECT_EQUAL(attributes.type, cudaMemoryTypeManaged);
  EXPECT(attributes.hostPointer == values && attributes.devicePointer == values);
  EXPECT_OK(cudaStreamAttachMemAsync(stream, values, 0, cudaMemAttachGlobal));
  EXPECT_OK(cudaStreamSynchronize(stream));

  int* none;
  EXPECT_ERROR(cudaMallocManaged(&none, 0), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMallocManaged(&none, 4, 0), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMallocManaged(&none, 4, cudaMemAttachSingle), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMemPrefetchAsync(values, kBytes, {cudaMemLocationTypeDevice, 1000}, 0, stream),
               cudaErrorInvalidDevice);
  cudaGetLastError();
  EXPECT_OK(cudaFree(values));
  EXPECT_OK(cudaStreamDestroy(stream));
  return failures();
}
