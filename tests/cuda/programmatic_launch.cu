// Programmatic dependent launch: a kernel that starts while the one before it still runs, and waits
// for that one's end where it needs its results; without the attribute, kernels follow each other.

#include "check.h"

constexpr unsigned kBlocks = 16;
constexpr unsigned kThreads = 64;
constexpr unsigned kCount = kBlocks * kThreads;

__device__ unsigned long long now() {
  unsigned long long ns;
  asm volatile("mov.u64 %0, %globaltimer;" : "=l"(ns));
  return ns;
}

/// Lets the next kernel start, and only then writes its results.
__global__ void produce(unsigned* data, unsigned round, unsigned long long* ended) {
  cudaTriggerProgrammaticLaunchCompletion();
  for (int nap = 0; nap < 40; ++nap) __nanosleep(1000);
  data[blockIdx.x * blockDim.x + threadIdx.x] += round + threadIdx.x;
  if (threadIdx.x == 0 && blockIdx.x == 0) *ended = now();
}

/// Reads another thread's results after the wait.
__global__ void consume(const unsigned* data, unsigned* sums, unsigned long long* started) {
  if (threadIdx.x == 0 && blockIdx.x == 0) *started = now();
  cudaGridDependencySynchronize();
  unsigned at = blockIdx.x * blockDim.x + threadIdx.x;
  sums[at] += data[kCount - 1 - at];
}

int main() {
  int major = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major < 9) return 77;
  unsigned *data, *sums, host[kCount];
  unsigned long long *times, host_times[2];
  REQUIRE_OK(cudaMalloc(&data, sizeof host));
  REQUIRE_OK(cudaMalloc(&sums, sizeof host));
  REQUIRE_OK(cudaMalloc(&times, sizeof host_times));
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));

  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(kBlocks);
  config.blockDim = dim3(kThreads);
  config.stream = stream;
  config.attrs = &attribute;
  for (unsigned overlap : {1u, 0u}) {
    config.numAttrs = overlap;
    REQUIRE_OK(cudaMemsetAsync(data, 0, sizeof host, stream));
    REQUIRE_OK(cudaMemsetAsync(sums, 0, sizeof host, stream));
    unsigned expected = 0, total = 0;
    for (unsigned round = 1; round <= 5; ++round) {
      // The producer of a round must wait for the consumer of the one before: no attribute.
      produce<<<kBlocks, kThreads, 0, stream>>>(data, round, times);
      REQUIRE_OK(cudaGetLastError());
      REQUIRE_OK(cudaLaunchKernelEx(&config, consume, (const unsigned*)data, sums, times + 1));
      expected += round;
      total += expected;
    }
    REQUIRE_OK(cudaMemcpyAsync(host, sums, sizeof host, cudaMemcpyDeviceToHost, stream));
    REQUIRE_OK(
        cudaMemcpyAsync(host_times, times, sizeof host_times, cudaMemcpyDeviceToHost, stream));
    REQUIRE_OK(cudaStreamSynchronize(stream));
    for (unsigned at = 0; at < kCount; ++at) {
      // Thread t of round r added r + t: 15 times t in the five sums.
      EXPECT_EQUAL(host[at], total + 15 * ((kCount - 1 - at) % kThreads));
    }
    // The attribute allows an overlap and does not promise it; without it there is none.
    if (overlap == 0) EXPECT(host_times[1] >= host_times[0]);
  }
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(data));
  EXPECT_OK(cudaFree(sums));
  EXPECT_OK(cudaFree(times));
  return failures();
}
