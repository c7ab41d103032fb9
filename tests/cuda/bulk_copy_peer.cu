// Bulk copies and reductions from shared memory into the memory of another device, and from there.

#include <cuda/ptx>

#include <vector>

#include "check.h"

namespace ptx = cuda::ptx;
constexpr int kThreads = 256;

/// Adds `mine` to `peer`, and puts what `peer` held into `before`.
__global__ void exchange(const int* mine, int* peer, int* before) {
  __shared__ alignas(16) int own[kThreads], other[kThreads];
  __shared__ alignas(8) uint64_t barrier;
  constexpr unsigned kBytes = sizeof own;
  int offset = static_cast<int>(blockIdx.x) * kThreads;
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_proxy_async(ptx::space_shared);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier,
                                   2 * kBytes);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, own, mine + offset, kBytes, &barrier);
    ptx::cp_async_bulk(ptx::space_cluster, ptx::space_global, other, peer + offset, kBytes,
                       &barrier);
  }
  __syncthreads();
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  own[threadIdx.x] *= 3;
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_reduce_async_bulk(ptx::space_global, ptx::space_shared, ptx::op_add, peer + offset, own,
                              kBytes);
    ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, before + offset, other, kBytes);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

int main() {
  int count = 0, can = 0;
  REQUIRE_OK(cudaGetDeviceCount(&count));
  if (count >= 2) REQUIRE_OK(cudaDeviceCanAccessPeer(&can, 0, 1));
  if (can == 0) {
    fprintf(stderr, "needs two devices with peer access\n");
    return 77;
  }
  constexpr int kBlocks = 16;
  constexpr size_t kCount = kBlocks * kThreads;
  std::vector<int> mine(kCount), theirs(kCount), results(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    mine[i] = static_cast<int>(i);
    theirs[i] = static_cast<int>(i * i % 1009);
  }
  size_t bytes = kCount * sizeof(int);
  int *on_first, *before, *on_second;
  REQUIRE_OK(cudaSetDevice(1));
  REQUIRE_OK(cudaMalloc(&on_second, bytes));
  REQUIRE_OK(cudaMemcpy(on_second, theirs.data(), bytes, cudaMemcpyHostToDevice));
  REQUIRE_OK(cudaSetDevice(0));
  REQUIRE_OK(cudaDeviceEnablePeerAccess(1, 0));
  REQUIRE_OK(cudaMalloc(&on_first, bytes));
  REQUIRE_OK(cudaMalloc(&before, bytes));
  REQUIRE_OK(cudaMemcpy(on_first, mine.data(), bytes, cudaMemcpyHostToDevice));
  exchange<<<kBlocks, kThreads>>>(on_first, on_second, before);
  REQUIRE_OK(cudaDeviceSynchronize());
  REQUIRE_OK(cudaMemcpy(results.data(), before, bytes, cudaMemcpyDeviceToHost));
  EXPECT(results == theirs);
  REQUIRE_OK(cudaMemcpy(results.data(), on_second, bytes, cudaMemcpyDeviceToHost));
  bool right = true;
  for (size_t i = 0; i < kCount; ++i) right = right && results[i] == theirs[i] + 3 * mine[i];
  EXPECT(right);
  return failures();
}
