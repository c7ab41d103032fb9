// Memory pools: default and current pools, pools of a program's own, what their attributes say
// while memory comes and goes, the release threshold, and access by other devices.

#include <cstdint>

#include "check.h"

__global__ void store(int* out, int value) { *out = value; }

namespace {

uint64_t attribute(cudaMemPool_t pool, cudaMemPoolAttr which) {
  uint64_t value = ~uint64_t{0};
  EXPECT_OK(cudaMemPoolGetAttribute(pool, which, &value));
  return value;
}

cudaMemPool_t create_pool(int device) {
  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device;
  cudaMemPool_t pool = nullptr;
  REQUIRE_OK(cudaMemPoolCreate(&pool, &props));
  return pool;
}

void count(cudaMemPool_t pool, cudaStream_t stream) {
  constexpr size_t kBytes = 8 << 20;
  EXPECT_EQUAL(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0);
  int *first, *second;
  REQUIRE_OK(cudaMallocFromPoolAsync(&first, kBytes, pool, stream));
  REQUIRE_OK(cudaMallocFromPoolAsync(&second, kBytes, pool, stream));
  EXPECT_EQUAL(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 2 * kBytes);
  EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= 2 * kBytes);
  EXPECT_OK(cudaFreeAsync(first, stream));
  EXPECT_OK(cudaFreeAsync(second, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  // Without a threshold a synchronisation gives everything back.
  EXPECT_EQUAL(attribute(pool, cudaMemPoolAttrUsedMemCurrent), 0);
  EXPECT_EQUAL(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0);
  EXPECT_EQUAL(attribute(pool, cudaMemPoolAttrUsedMemHigh), 2 * kBytes);
  EXPECT(attribute(pool, cudaMemPoolAttrReservedMemHigh) >= 2 * kBytes);
  uint64_t zero = 0, one = 1;
  EXPECT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &zero));
  EXPECT_EQUAL(attribute(pool, cudaMemPoolAttrUsedMemHigh), 0);
  EXPECT_ERROR(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrUsedMemHigh, &one),
               cudaErrorInvalidValue);

  uint64_t threshold = ~uint64_t{0};
  EXPECT_OK(cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold));
  EXPECT(attribute(pool, cudaMemPoolAttrReleaseThreshold) == threshold);
  REQUIRE_OK(cudaMallocFromPoolAsync(&first, kBytes, pool, stream));
  EXPECT_OK(cudaFreeAsync(first, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT(attribute(pool, cudaMemPoolAttrReservedMemCurrent) >= kBytes);
  EXPECT_OK(cudaMemPoolTrimTo(pool, 0));
  EXPECT_EQUAL(attribute(pool, cudaMemPoolAttrReservedMemCurrent), 0);
  cudaGetLastError();
}

void choose_pools(cudaMemPool_t mine, cudaStream_t stream) {
  cudaMemPool_t standard, current;
  EXPECT_OK(cudaDeviceGetDefaultMemPool(&standard, 0));
  EXPECT_OK(cudaDeviceGetMemPool(&current, 0));
  EXPECT(standard == current);
  EXPECT(standard != mine);
  EXPECT_OK(cudaDeviceSetMemPool(0, mine));
  EXPECT_OK(cudaDeviceGetMemPool(&current, 0));
  EXPECT(current == mine);
  int* memory;
  REQUIRE_OK(cudaMallocAsync(&memory, 4096, stream));
  EXPECT(attribute(mine, cudaMemPoolAttrUsedMemCurrent) >= 4096);
  EXPECT_OK(cudaFreeAsync(memory, stream));
  EXPECT_OK(cudaDeviceSetMemPool(0, standard));
  EXPECT_ERROR(cudaMemPoolDestroy(standard), cudaErrorInvalidValue);
  int follow = -1;
  EXPECT_OK(cudaMemPoolGetAttribute(mine, cudaMemPoolReuseFollowEventDependencies, &follow));
  EXPECT_EQUAL(follow, 1);
  follow = 0;
  EXPECT_OK(cudaMemPoolSetAttribute(mine, cudaMemPoolReuseFollowEventDependencies, &follow));
  follow = -1;
  EXPECT_OK(cudaMemPoolGetAttribute(mine, cudaMemPoolReuseFollowEventDependencies, &follow));
  EXPECT_EQUAL(follow, 0);
  cudaGetLastError();
}

/// Kernels of a second device reach the pool's memory once the pool says so; peer access of the
/// devices does not matter.
void share_with_peer(cudaMemPool_t pool, cudaStream_t stream) {
  int num_devices = 0, can_access = 0;
  REQUIRE_OK(cudaGetDeviceCount(&num_devices));
  if (num_devices < 2) return;
  REQUIRE_OK(cudaDeviceCanAccessPeer(&can_access, 1, 0));
  if (can_access == 0) return;
  cudaMemAccessDesc access = {};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = 1;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  cudaMemAccessFlags flags;
  EXPECT_OK(cudaMemPoolGetAccess(&flags, pool, &access.location));
  EXPECT_EQUAL(flags, cudaMemAccessFlagsProtNone);
  EXPECT_OK(cudaMemPoolSetAccess(pool, &access, 1));
  EXPECT_OK(cudaMemPoolGetAccess(&flags, pool, &access.location));
  EXPECT_EQUAL(flags, cudaMemAccessFlagsProtReadWrite);
  int *memory, found = 0;
  REQUIRE_OK(cudaMallocFromPoolAsync(&memory, sizeof(int), pool, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_OK(cudaSetDevice(1));
  store<<<1, 1>>>(memory, 31);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaSetDevice(0));
  EXPECT_OK(cudaMemcpy(&found, memory, sizeof found, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(found, 31);
  EXPECT_OK(cudaFreeAsync(memory, stream));
}

}  // namespace

int main() {
  int supported = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolsSupported, 0));
  if (supported == 0) return 77;
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  cudaMemPool_t pool = create_pool(0);
  count(pool, stream);
  choose_pools(pool, stream);
  share_with_peer(pool, stream);

  // A pool may go while its memory is in use.
  int *memory, found = 0;
  REQUIRE_OK(cudaMallocFromPoolAsync(&memory, sizeof(int), pool, stream));
  EXPECT_OK(cudaMemPoolDestroy(pool));
  store<<<1, 1, 0, stream>>>(memory, 8);
  EXPECT_OK(cudaMemcpyAsync(&found, memory, sizeof found, cudaMemcpyDeviceToHost, stream));
  EXPECT_OK(cudaFreeAsync(memory, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  EXPECT_EQUAL(found, 8);
  cudaMemPoolProps props = {};
  EXPECT_ERROR(cudaMemPoolCreate(&pool, &props), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaStreamDestroy(stream));
  return failures();
}
