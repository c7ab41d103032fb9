// mbarrier objects by PTX: phases, counts of bytes, dropped arrivals, states and parities.

#include <cstdint>

#include "check.h"

__device__ uint32_t shared_address(const void* pointer) {
  return static_cast<uint32_t>(__cvta_generic_to_shared(pointer));
}

__device__ void init(uint64_t* barrier, uint32_t count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
}

__device__ uint64_t arrive(uint64_t* barrier, uint32_t count) {
  uint64_t state;
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1], %2;"
               : "=l"(state)
               : "r"(shared_address(barrier)), "r"(count)
               : "memory");
  return state;
}

__device__ bool is_over(uint64_t* barrier, uint64_t state) {
  uint32_t over;
  asm volatile(
      "{ .reg .pred p; mbarrier.test_wait.shared::cta.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
      : "=r"(over)
      : "r"(shared_address(barrier)), "l"(state)
      : "memory");
  return over != 0;
}

__device__ void wait_parity(uint64_t* barrier, uint32_t parity) {
  asm volatile(
      "{ .reg .pred p;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n"
      "@p bra over;\n"
      "bra again;\n"
      "over: }" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ uint32_t pending(uint64_t state) {
  uint32_t count;
  asm("mbarrier.pending_count.b64 %0, %1;" : "=r"(count) : "l"(state));
  return count;
}

/// Each thread adds what its neighbour wrote in the phase before.
__global__ void rounds(int* sums) {
  __shared__ uint64_t barrier;
  __shared__ int values[2][256];
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  int sum = 0;
  for (uint32_t round = 0; round < 6; ++round) {
    values[round % 2][threadIdx.x] = static_cast<int>(threadIdx.x * (round + 1));
    arrive(&barrier, 1);
    wait_parity(&barrier, round % 2);
    sum += values[round % 2][(threadIdx.x + 33) % blockDim.x];
  }
  sums[threadIdx.x] = sum;
}

/// One thread, step by step.
__global__ void steps(int* results) {
  __shared__ uint64_t barrier;
  uint32_t at = shared_address(&barrier);
  init(&barrier, 4);
  uint64_t first = arrive(&barrier, 3);
  results[0] = static_cast<int>(pending(first));
  results[1] = is_over(&barrier, first);
  uint64_t second = arrive(&barrier, 1);
  results[2] = static_cast<int>(pending(second));
  results[3] = is_over(&barrier, first);
  // The phase waits for bytes, too.
  uint64_t third;
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 %0, [%1], 96;"
               : "=l"(third)
               : "r"(at)
               : "memory");
  arrive(&barrier, 3);
  results[4] = is_over(&barrier, third);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 64;" ::"r"(at) : "memory");
  results[5] = is_over(&barrier, third);
  asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 32;" ::"r"(at) : "memory");
  results[6] = is_over(&barrier, third);
  // Two of the four arrivals are dropped for good.
  uint64_t state;
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 %0, [%1], 2;"
               : "=l"(state)
               : "r"(at)
               : "memory");
  arrive(&barrier, 2);
  results[7] = is_over(&barrier, state);
  uint64_t fourth = arrive(&barrier, 1);
  results[8] = static_cast<int>(pending(fourth));
  arrive(&barrier, 1);
  results[9] = is_over(&barrier, fourth);
  asm volatile("mbarrier.inval.shared::cta.b64 [%0];" ::"r"(at) : "memory");
  init(&barrier, 1);  // the memory may be used again
  results[10] = is_over(&barrier, arrive(&barrier, 1));
}

int main() {
  int* results;
  REQUIRE_OK(cudaHostAlloc(&results, 256 * sizeof(int), cudaHostAllocMapped));
  rounds<<<1, 256>>>(results);
  REQUIRE_OK(cudaDeviceSynchronize());
  for (int i = 0; i < 256; ++i) EXPECT_EQUAL(results[i], (i + 33) % 256 * 21);
  steps<<<1, 1>>>(results);
  REQUIRE_OK(cudaDeviceSynchronize());
  const int expected[] = {4, 0, 1, 1, 0, 0, 1, 1, 2, 1, 1};
  for (int i = 0; i < 11; ++i) EXPECT_EQUAL(results[i], expected[i]);
  EXPECT_OK(cudaFreeHost(results));
  return failures();
}
