// Atomic exchange and comparison of 16 bytes, in global and shared memory: no thread sees half of a
// write.

#include "array.h"

struct alignas(16) Word {
  unsigned long long low, high;
};

/// A lock-free list: each thread puts itself in front, with a count.
__global__ void push(Word* head, unsigned long long* next) {
#if __CUDA_ARCH__ >= 900
  unsigned long long me = blockIdx.x * blockDim.x + threadIdx.x + 1;
  Word seen = *head;
  while (true) {
    next[me] = seen.low;
    Word mine = {me, seen.high + 1};
    Word old = atomicCAS(head, seen, mine);
    if (old.low == seen.low && old.high == seen.high) return;
    seen = old;
  }
#endif
}

/// Threads hand on a word whose halves belong together.
__global__ void pass(Word* out, unsigned* torn) {
#if __CUDA_ARCH__ >= 900
  __shared__ Word word;
  if (threadIdx.x == 0) word = {0, ~0ull};
  __syncthreads();
  unsigned long long value = threadIdx.x + 1;
  for (int round = 0; round < 8; ++round) {
    Word old = atomicExch(&word, Word{value, ~value});
    if (old.low != ~old.high) atomicAdd(torn, 1);
    value = old.low + 1000;
  }
  __syncthreads();
  atomicAdd(&out[0].high, value);
  if (threadIdx.x == 0) atomicAdd(&out[0].high, word.low);
#endif
}

int main() {
  int major = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major < 9) return 77;
  constexpr int kThreads = 64;
  Array<Word> head(1), out(1);
  Array<unsigned long long> next(2 * kThreads + 1);
  Array<unsigned> torn(1);
  push<<<2, kThreads>>>(head.device, next.device);
  head.to_host();
  next.to_host();
  EXPECT_EQUAL(head.host[0].high, 2 * kThreads);
  std::vector<bool> seen(2 * kThreads + 1);
  int length = 0;
  for (unsigned long long at = head.host[0].low; at != 0 && length < 1000; at = next.host[at]) {
    EXPECT(!seen[at]);
    seen[at] = true;
    ++length;
  }
  EXPECT_EQUAL(length, 2 * kThreads);

  pass<<<1, kThreads>>>(out.device, torn.device);
  out.to_host();
  torn.to_host();
  EXPECT_EQUAL(torn.host[0], 0);
  // Nothing that was put in is lost: each of the 8 rounds adds 1000 to one of 64 numbers.
  long long numbers = kThreads * (kThreads + 1) / 2;
  EXPECT_EQUAL(out.host[0].high, numbers + 8 * 1000 * kThreads);
  return failures();
}
