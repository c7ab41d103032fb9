// Bulk copies into shared memory and back: cuda::memcpy_async_tx, cuda::ptx, and PTX by hand.

#include <cuda/barrier>
#include <cuda/ptx>

#include <vector>

#include "check.h"

// A barrier is initialised by init().
#pragma nv_diag_suppress static_var_with_dynamic_init

namespace ptx = cuda::ptx;
using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int kThreads = 128;
constexpr int kTile = 1024;

__global__ void add_one(int* data, int tiles) {
  __shared__ alignas(128) int tile[kTile];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, kThreads);
    ptx::fence_proxy_async(ptx::space_shared);
  }
  __syncthreads();
  for (int at = blockIdx.x; at < tiles; at += gridDim.x) {
    Barrier::arrival_token token;
    if (threadIdx.x == 0) {
      cuda::device::memcpy_async_tx(tile, data + at * kTile, cuda::aligned_size_t<16>(sizeof tile),
                                    barrier);
      token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof tile);
    } else {
      token = barrier.arrive();
    }
    barrier.wait(std::move(token));
    for (int i = threadIdx.x; i < kTile; i += kThreads) tile[i] += 1;
    ptx::fence_proxy_async(ptx::space_shared);
    __syncthreads();
    if (threadIdx.x == 0) {
      ptx::cp_async_bulk(ptx::space_global, ptx::space_shared, data + at * kTile, tile,
                         sizeof tile);
      ptx::cp_async_bulk_commit_group();
      ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>());
    }
    __syncthreads();
  }
}

/// Pieces of many sizes, all in flight together, to other places and back.
__global__ void scatter(const char* from, char* to, const int* sizes, int count) {
  __shared__ alignas(16) char room[16384];
  __shared__ alignas(8) uint64_t barrier;
  unsigned at = static_cast<unsigned>(__cvta_generic_to_shared(&barrier));
  unsigned there = static_cast<unsigned>(__cvta_generic_to_shared(room));
  if (threadIdx.x == 0) {
    ptx::mbarrier_init(&barrier, 1);
    ptx::fence_mbarrier_init(ptx::sem_release, ptx::scope_cluster);
    int total = 0;
    for (int i = 0; i < count; ++i) total += sizes[i];
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier,
                                   total);
    for (int i = 0, done = 0; i < count; done += sizes[i++]) {
      asm volatile(
          "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, "
          "[%3];" ::"r"(there + total - done - sizes[i]),
          "l"(from + done), "r"(sizes[i]), "r"(at)
          : "memory");
    }
    while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
    }
    for (int i = 0, done = 0; i < count; done += sizes[i++]) {
      asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(to + done),
                   "r"(there + total - done - sizes[i]), "r"(sizes[i])
                   : "memory");
      asm volatile("cp.async.bulk.commit_group;");
      if (i % 2 == 1) asm volatile("cp.async.bulk.wait_group.read 1;" ::: "memory");
    }
    asm volatile("cp.async.bulk.wait_group 0;" ::: "memory");
  }
}

int main() {
  constexpr int kTiles = 37;
  std::vector<int> values(kTiles * kTile), results(values.size());
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i * 40503u);
  size_t bytes = values.size() * sizeof(int);
  int *from, *to, *sizes;
  REQUIRE_OK(cudaMalloc(&from, bytes));
  REQUIRE_OK(cudaMalloc(&to, bytes));
  REQUIRE_OK(cudaMemcpy(from, values.data(), bytes, cudaMemcpyHostToDevice));
  add_one<<<8, kThreads>>>(from, kTiles);
  REQUIRE_OK(cudaMemcpy(results.data(), from, bytes, cudaMemcpyDeviceToHost));
  bool right = true;
  for (size_t i = 0; i < values.size(); ++i) right = right && results[i] == values[i] + 1;
  EXPECT(right);

  const int kSizes[] = {16, 4096, 32, 48, 1600, 16, 8000, 112};
  int total = 0;
  for (int size : kSizes) total += size;
  REQUIRE_OK(cudaMalloc(&sizes, sizeof kSizes));
  REQUIRE_OK(cudaMemcpy(sizes, kSizes, sizeof kSizes, cudaMemcpyHostToDevice));
  REQUIRE_OK(cudaMemset(to, 0xff, bytes));
  scatter<<<1, 32>>>(reinterpret_cast<char*>(from), reinterpret_cast<char*>(to), sizes, 8);
  REQUIRE_OK(cudaMemcpy(values.data(), to, bytes, cudaMemcpyDeviceToHost));
  right = true;
  for (int i = 0; i < total / 4; ++i) right = right && values[i] == results[i];
  EXPECT(right);
  EXPECT_EQUAL(values[total / 4], -1);
  return failures();
}
