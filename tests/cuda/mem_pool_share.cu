// A memory pool shared by two processes: a descriptor of the pool, then a pointer into it. Each
// process writes what the other reads.

#include <cstdint>

#include "check.h"
#include "ranks.h"

__global__ void fill(int* out, int count, int value) {
  for (int at = threadIdx.x; at < count; at += blockDim.x) out[at] = value + at;
}

namespace {

constexpr int kCount = 3000;
constexpr size_t kBytes = kCount * sizeof(int);

bool holds(const int* memory, int value) {
  static int found[kCount];
  if (!EXPECT_OK(cudaMemcpy(found, memory, kBytes, cudaMemcpyDeviceToHost))) return false;
  for (int at = 0; at < kCount; ++at) {
    if (found[at] != value + at) return false;
  }
  return true;
}

struct Offer {
  cudaMemPoolPtrExportData pointer;
  int device;
};

}  // namespace

int main() {
  Ranks ranks(2);
  int supported = 0, num_devices = 0;
  REQUIRE_OK(cudaGetDeviceCount(&num_devices));
  int device = ranks.rank() % num_devices;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrMemoryPoolSupportedHandleTypes, device));
  if ((supported & cudaMemHandleTypePosixFileDescriptor) == 0) return 77;
  REQUIRE_OK(cudaSetDevice(device));
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreate(&stream));

  cudaMemPoolProps props = {};
  props.allocType = cudaMemAllocationTypePinned;
  props.handleTypes = cudaMemHandleTypePosixFileDescriptor;
  props.location.type = cudaMemLocationTypeDevice;
  props.location.id = device;
  cudaMemPool_t pool;
  REQUIRE_OK(cudaMemPoolCreate(&pool, &props));
  int* mine;
  REQUIRE_OK(cudaMallocFromPoolAsync(&mine, kBytes, pool, stream));
  fill<<<1, 256, 0, stream>>>(mine, kCount, 100 * (ranks.rank() + 1));
  EXPECT_OK(cudaStreamSynchronize(stream));

  int fd = -1, fds[2];
  REQUIRE_OK(
      cudaMemPoolExportToShareableHandle(&fd, pool, cudaMemHandleTypePosixFileDescriptor, 0));
  ranks.exchange_fds(fd, fds);
  Offer offer = {}, offers[2];
  offer.device = device;
  REQUIRE_OK(cudaMemPoolExportPointer(&offer.pointer, mine));
  ranks.allgather(&offer, offers, sizeof offer);

  int peer = 1 - ranks.rank();
  cudaMemPool_t imported;
  REQUIRE_OK(cudaMemPoolImportFromShareableHandle(&imported,
                                                  reinterpret_cast<void*>(intptr_t{fds[peer]}),
                                                  cudaMemHandleTypePosixFileDescriptor, 0));
  int* theirs;
  REQUIRE_OK(
      cudaMemPoolImportPointer(reinterpret_cast<void**>(&theirs), imported, &offers[peer].pointer));
  cudaMemAccessDesc access = {};
  access.location.type = cudaMemLocationTypeDevice;
  access.location.id = device;
  access.flags = cudaMemAccessFlagsProtReadWrite;
  if (offers[peer].device != device) EXPECT_OK(cudaMemPoolSetAccess(imported, &access, 1));
  EXPECT(holds(theirs, 100 * (peer + 1)));
  ranks.barrier();
  fill<<<1, 256, 0, stream>>>(theirs, kCount, 7000 + ranks.rank());
  EXPECT_OK(cudaStreamSynchronize(stream));
  ranks.barrier();
  EXPECT(holds(mine, 7000 + peer));

  // An imported pool makes no memory, and cannot be a device's own.
  int* none;
  EXPECT_ERROR(cudaMallocFromPoolAsync(&none, 64, imported, stream), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaDeviceSetMemPool(offers[peer].device, imported), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaFreeAsync(theirs, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  ranks.barrier();
  EXPECT_OK(cudaFree(mine));
  EXPECT_OK(cudaMemPoolDestroy(imported));
  EXPECT_OK(cudaMemPoolDestroy(pool));
  close(fd);
  for (int other : fds) close(other);
  return ranks.finish(failures());
}
