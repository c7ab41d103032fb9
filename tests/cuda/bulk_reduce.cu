// Bulk reductions from the shared memory of many blocks into one buffer.

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda/ptx>

#include <vector>

#include "check.h"

namespace ptx = cuda::ptx;
constexpr int kThreads = 128;

#define REDUCE(name, text, type)                                              \
  struct name {                                                               \
    using Type = type;                                                        \
    static __device__ void start(type* to, unsigned from, unsigned bytes) {   \
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group." text \
                   " [%0], [%1], %2;" ::"l"(to),                              \
                   "r"(from), "r"(bytes)                                      \
                   : "memory");                                               \
    }                                                                         \
  };
REDUCE(AddU32, "add.u32", unsigned)
REDUCE(AddU64, "add.u64", unsigned long long)
REDUCE(MinS32, "min.s32", int)
REDUCE(MaxS64, "max.s64", long long)
REDUCE(IncU32, "inc.u32", unsigned)
REDUCE(XorB32, "xor.b32", unsigned)
REDUCE(OrB64, "or.b64", unsigned long long)
REDUCE(AddF32, "add.f32", float)
REDUCE(AddF64, "add.f64", double)
REDUCE(AddF16, "add.noftz.f16", __half)
REDUCE(MaxBf16, "max.bf16", __nv_bfloat16)

/// What block `block` contributes at `at`: small whole numbers, which every type holds.
__host__ __device__ int part(unsigned block, unsigned at) {
  return static_cast<int>((block * 7 + at * 13) % 23);
}

template <typename Reduction>
__global__ void reduce(typename Reduction::Type* to) {
  using T = typename Reduction::Type;
  __shared__ alignas(16) T values[kThreads];
  values[threadIdx.x] = static_cast<T>(static_cast<float>(part(blockIdx.x, threadIdx.x)));
  ptx::fence_proxy_async(ptx::space_shared);
  __syncthreads();
  if (threadIdx.x == 0) {
    Reduction::start(to, static_cast<unsigned>(__cvta_generic_to_shared(values)), sizeof values);
    ptx::cp_async_bulk_commit_group();
    ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
  }
}

template <typename Reduction, typename Combine>
void check(const char* what, Combine combine) {
  using T = typename Reduction::Type;
  constexpr unsigned kBlocks = 9;
  std::vector<T> values(kThreads);
  for (int i = 0; i < kThreads; ++i) values[i] = static_cast<T>(static_cast<float>(i % 5));
  T* to;
  REQUIRE_OK(cudaMalloc(&to, sizeof(T) * kThreads));
  REQUIRE_OK(cudaMemcpy(to, values.data(), sizeof(T) * kThreads, cudaMemcpyHostToDevice));
  reduce<Reduction><<<kBlocks, kThreads>>>(to);
  REQUIRE_OK(cudaMemcpy(values.data(), to, sizeof(T) * kThreads, cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < kThreads; ++i) {
    long long expected = i % 5;
    for (unsigned block = 0; block < kBlocks; ++block) expected = combine(expected, part(block, i));
    if (!EXPECT_EQUAL(static_cast<long long>(static_cast<float>(values[i])), expected)) {
      fprintf(stderr, "%s at %u\n", what, i);
      return;
    }
  }
  EXPECT_OK(cudaFree(to));
}

/// inc depends on the order of what it counts up to; all blocks count up to the same.
__global__ void count_up(unsigned* to) {
  __shared__ alignas(16) unsigned limits[4];
  if (threadIdx.x != 0) return;
  for (unsigned& limit : limits) limit = 5;
  ptx::fence_proxy_async(ptx::space_shared);
  IncU32::start(to, static_cast<unsigned>(__cvta_generic_to_shared(limits)), sizeof limits);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group(ptx::n32_t<0>());
}

int main() {
  using Number = long long;
  auto sum = [](Number a, Number b) { return a + b; };
  auto most = [](Number a, Number b) { return a > b ? a : b; };
  check<AddU32>("add.u32", sum);
  check<AddU64>("add.u64", sum);
  check<MinS32>("min.s32", [](Number a, Number b) { return a < b ? a : b; });
  check<MaxS64>("max.s64", most);
  check<XorB32>("xor.b32", [](Number a, Number b) { return a ^ b; });
  check<OrB64>("or.b64", [](Number a, Number b) { return a | b; });
  check<AddF32>("add.f32", sum);
  check<AddF64>("add.f64", sum);
  check<AddF16>("add.f16", sum);
  check<MaxBf16>("max.bf16", most);
  unsigned *to, counts[4];
  REQUIRE_OK(cudaMalloc(&to, sizeof counts));
  REQUIRE_OK(cudaMemset(to, 0, sizeof counts));
  count_up<<<20, 32>>>(to);
  REQUIRE_OK(cudaMemcpy(counts, to, sizeof counts, cudaMemcpyDeviceToHost));
  for (unsigned count : counts) EXPECT_EQUAL(count, 20 % 6);
  return failures();
}
