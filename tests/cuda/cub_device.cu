// CUB's algorithms on whole arrays: a reduction, a scan with look-back between blocks, a radix
// sort.

#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_reduce.cuh>
#include <cub/device/device_scan.cuh>

#include <algorithm>
#include <vector>

#include "check.h"

constexpr int kCount = 10007;

/// Calls an algorithm twice, as CUB wants it: for the size of its memory, then for its work.
template <class Algorithm>
static void run(Algorithm algorithm) {
  void* memory = nullptr;
  size_t bytes = 0;
  REQUIRE_OK(algorithm(memory, bytes));
  REQUIRE_OK(cudaMalloc(&memory, bytes + 1));
  EXPECT_OK(algorithm(memory, bytes));
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(memory));
}

int main() {
  std::vector<unsigned> values(kCount), results(kCount);
  for (int i = 0; i < kCount; ++i) values[i] = i * 2654435761U % 10007;
  unsigned *in = nullptr, *out = nullptr;
  REQUIRE_OK(cudaMalloc(&in, kCount * sizeof(unsigned)));
  REQUIRE_OK(cudaMalloc(&out, kCount * sizeof(unsigned)));
  REQUIRE_OK(cudaMemcpy(in, values.data(), kCount * sizeof(unsigned), cudaMemcpyHostToDevice));

  run([&](void* memory, size_t& bytes) {
    return cub::DeviceReduce::Sum(memory, bytes, in, out, kCount);
  });
  unsigned sum = 0, device_sum = 0;
  for (unsigned value : values) sum += value;
  EXPECT_OK(cudaMemcpy(&device_sum, out, sizeof device_sum, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(device_sum, sum);

  run([&](void* memory, size_t& bytes) {
    return cub::DeviceScan::InclusiveSum(memory, bytes, in, out, kCount);
  });
  EXPECT_OK(cudaMemcpy(results.data(), out, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  unsigned running = 0;
  for (int i = 0; i < kCount; ++i) {
    running += values[i];
    if (!EXPECT_EQUAL(results[i], running)) break;
  }

  run([&](void* memory, size_t& bytes) {
    return cub::DeviceRadixSort::SortKeys(memory, bytes, in, out, kCount);
  });
  EXPECT_OK(cudaMemcpy(results.data(), out, kCount * sizeof(unsigned), cudaMemcpyDeviceToHost));
  std::sort(values.begin(), values.end());
  for (int i = 0; i < kCount; ++i) {
    if (!EXPECT_EQUAL(results[i], values[i])) break;
  }
  return failures();
}
