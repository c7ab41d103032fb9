// Atomic additions of halves, pairs, and vectors of them and of floats, in global and shared
// memory.

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "array.h"

/// Small whole numbers, which every format sums up exactly in any order.
struct Sums {
  __half half;
  __nv_bfloat16 brain;
  __half2 halves;
  __nv_bfloat162 brains;
  float single;
  double wide;
  alignas(16) float2 pair;
  alignas(16) float4 four;
  alignas(16) unsigned packed[4];
};

__device__ void add_packed(unsigned* to, unsigned halves, unsigned brains) {
  asm volatile("red.global.v2.f16x2.add.noftz [%0], {%1, %1};" ::"l"(to), "r"(halves) : "memory");
  asm volatile("red.global.v2.bf16x2.max.noftz [%0], {%1, %1};" ::"l"(to + 2), "r"(brains)
               : "memory");
}

__global__ void add(Sums* sums, float4* olds) {
  __shared__ __half2 shared_halves;
  __shared__ float shared_single;
  if (threadIdx.x == 0) {
    shared_halves = __float2half2_rn(0);
    shared_single = 0;
  }
  __syncthreads();
  float lane = threadIdx.x % 4;
  atomicAdd(&shared_halves, __floats2half2_rn(1, lane));
  atomicAdd(&shared_single, lane);
  __syncthreads();
  atomicAdd(&sums->half, __float2half(1));
  atomicAdd(&sums->brain, __float2bfloat16(lane / 2));
  atomicAdd(&sums->halves, __floats2half2_rn(lane, -1));
  atomicAdd(&sums->brains, __floats2bfloat162_rn(0.5f, lane));
  atomicAdd(&sums->wide, lane * 0.125);
  if (threadIdx.x == 0) {
    atomicAdd(&sums->single,
              shared_single + __low2float(shared_halves) + 1000 * __high2float(shared_halves));
  }
#if __CUDA_ARCH__ >= 900
  atomicAdd(&sums->pair, make_float2(1, lane));
  float4 old = atomicAdd(&sums->four, make_float4(1, 2, lane, -1));
  olds[blockIdx.x * blockDim.x + threadIdx.x] = old;
  __half2 one = __floats2half2_rn(1, 2);
  __nv_bfloat162 number = __floats2bfloat162_rn(threadIdx.x, -lane);
  add_packed(sums->packed, reinterpret_cast<unsigned&>(one), reinterpret_cast<unsigned&>(number));
#endif
}

int main() {
  int major = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major < 9) return 77;
  constexpr int kThreads = 64, kBlocks = 2, kAll = kThreads * kBlocks;
  Array<Sums> sums(1);
  Array<float4> olds(kAll);
  memset(static_cast<void*>(sums.host.data()), 0, sizeof(Sums));
  sums.host[0].packed[2] = sums.host[0].packed[3] = 0xc100c100;  // -8
  sums.to_device();
  add<<<kBlocks, kThreads>>>(sums.device, olds.device);
  sums.to_host();
  olds.to_host();
  const Sums& s = sums.host[0];
  // The lanes' numbers 0 to 3 sum up to 3/2 of the threads.
  EXPECT_EQUAL(__half2float(s.half), kAll);
  EXPECT_EQUAL(__bfloat162float(s.brain), kAll * 3 / 4);
  EXPECT_EQUAL(__low2float(s.halves), kAll * 3 / 2);
  EXPECT_EQUAL(__high2float(s.halves), -kAll);
  EXPECT_EQUAL(__low2float(s.brains), kAll / 2);
  EXPECT_EQUAL(__high2float(s.brains), kAll * 3 / 2);
  EXPECT_EQUAL(s.wide * 16, kAll * 3);
  EXPECT_EQUAL(s.single, kBlocks * (kThreads * 3 / 2 + kThreads + 1000 * (kThreads * 3 / 2)));
  EXPECT_EQUAL(s.pair.x, kAll);
  EXPECT_EQUAL(s.pair.y, kAll * 3 / 2);
  EXPECT_EQUAL(s.four.y, 2 * kAll);
  EXPECT_EQUAL(s.four.z, kAll * 3 / 2);
  EXPECT_EQUAL(s.four.w, -kAll);
  // Each element is an atomic of its own: what was there before counts the threads.
  std::vector<bool> seen(kAll);
  for (const float4& old : olds.host) {
    auto count = static_cast<size_t>(old.x);
    if (EXPECT(count < seen.size())) seen[count] = true;
  }
  for (bool was : seen) EXPECT(was);
  __half2 halves = bits_as<__half2>(s.packed[1]);
  EXPECT_EQUAL(__low2float(halves), kAll);
  EXPECT_EQUAL(__high2float(halves), 2 * kAll);
  auto brains = bits_as<__nv_bfloat162>(s.packed[2]);
  EXPECT_EQUAL(__low2float(brains), kThreads - 1);
  EXPECT_EQUAL(__high2float(brains), 0);
  return failures();
}
