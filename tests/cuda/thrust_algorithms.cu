// Thrust on device vectors: transform, reduce and scan. Its sort is CUB's, see cub_device.cu.

#include <thrust/device_vector.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/transform.h>

#include <vector>

#include "check.h"

struct Scramble {
  __host__ __device__ int operator()(int value) const { return value * 7919 % 4099 - 2000; }
};

int main() {
  constexpr int kCount = 5000;
  thrust::device_vector<int> values(kCount), result(kCount);
  thrust::sequence(values.begin(), values.end());
  thrust::transform(values.begin(), values.end(), values.begin(), Scramble());
  std::vector<int> expected(kCount);
  long long sum = 0;
  for (int i = 0; i < kCount; ++i) {
    expected[i] = Scramble()(i);
    sum += expected[i];
  }
  EXPECT_EQUAL(thrust::reduce(values.begin(), values.end(), 0LL), sum);
  thrust::inclusive_scan(values.begin(), values.end(), result.begin());
  std::vector<int> copied(kCount);
  thrust::copy(result.begin(), result.end(), copied.begin());
  int running = 0;
  for (int i = 0; i < kCount; ++i) {
    running += expected[i];
    if (!EXPECT_EQUAL(copied[i], running)) break;
  }
  return failures();
}
