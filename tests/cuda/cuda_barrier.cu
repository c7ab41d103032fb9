// cuda::barrier of libcu++: tokens, parities, dropped threads, completion functions, bytes.

#include <cuda/barrier>

#include "check.h"

// A barrier is initialised by init().
#pragma nv_diag_suppress static_var_with_dynamic_init

using Barrier = cuda::barrier<cuda::thread_scope_block>;
constexpr int kThreads = 128;

__global__ void meet(int* sums) {
  __shared__ Barrier barrier;
  __shared__ int values[kThreads];
  if (threadIdx.x == 0) init(&barrier, kThreads);
  __syncthreads();
  int sum = 0;
  for (int round = 0; round < 4; ++round) {
    values[threadIdx.x] = static_cast<int>(threadIdx.x) + round;
    Barrier::arrival_token token = barrier.arrive();
    barrier.wait(std::move(token));
    sum += values[(threadIdx.x + 1) % kThreads];
    barrier.arrive_and_wait();
  }
  sums[threadIdx.x] = sum;
}

__global__ void leave_one_by_one(int* rounds) {
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) init(&barrier, kThreads);
  __syncthreads();
  // Thread i takes part i + 1 times.
  for (unsigned round = 0; round <= threadIdx.x; ++round) {
    if (round == threadIdx.x) {
      barrier.arrive_and_drop();
    } else {
      barrier.wait_parity(((void)barrier.arrive(), round % 2 != 0));
    }
    rounds[threadIdx.x] = static_cast<int>(round) + 1;
  }
}

__global__ void count_bytes(int* result) {
  __shared__ Barrier barrier;
  __shared__ alignas(16) int values[64];
  if (threadIdx.x == 0) {
    init(&barrier, kThreads);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(values));
  } else {
    token = barrier.arrive();
  }
  if (threadIdx.x == 1) {
    for (int i = 0; i < 64; ++i) values[i] = i;
    cuda::device::barrier_expect_tx(barrier, 0);
    auto* handle = cuda::device::barrier_native_handle(barrier);
    asm volatile("mbarrier.complete_tx.relaxed.cta.shared::cta.b64 [%0], 256;" ::"r"(
                     static_cast<unsigned>(__cvta_generic_to_shared(handle)))
                 : "memory");
  }
  barrier.wait(std::move(token));
  if (threadIdx.x < 64) result[threadIdx.x] = values[63 - threadIdx.x];
}

int main() {
  int* on_device;
  int results[kThreads];
  REQUIRE_OK(cudaMalloc(&on_device, sizeof results));
  auto fetch = [&] {
    REQUIRE_OK(cudaMemcpy(results, on_device, sizeof results, cudaMemcpyDeviceToHost));
  };
  meet<<<1, kThreads>>>(on_device);
  fetch();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQUAL(results[i], 4 * ((i + 1) % kThreads) + 6);
  leave_one_by_one<<<1, kThreads>>>(on_device);
  fetch();
  for (int i = 0; i < kThreads; ++i) EXPECT_EQUAL(results[i], i + 1);
  count_bytes<<<1, kThreads>>>(on_device);
  fetch();
  for (int i = 0; i < 64; ++i) EXPECT_EQUAL(results[i], 63 - i);
  EXPECT_OK(cudaFree(on_device));
  return failures();
}
