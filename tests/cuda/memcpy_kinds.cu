// Copies in every direction, by kind and by default.

#include <vector>

#include "check.h"

int main() {
  constexpr size_t kCount = 1 << 20;
  std::vector<int> source(kCount), target(kCount);
  for (size_t at = 0; at < kCount; ++at) source[at] = static_cast<int>(at * 2654435761u);
  constexpr size_t kBytes = kCount * sizeof(int);
  int *first, *second;
  REQUIRE_OK(cudaMalloc(&first, kBytes));
  REQUIRE_OK(cudaMalloc(&second, kBytes));

  EXPECT_OK(cudaMemcpy(first, source.data(), kBytes, cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy(second, first, kBytes, cudaMemcpyDeviceToDevice));
  EXPECT_OK(cudaMemcpy(target.data(), second, kBytes, cudaMemcpyDeviceToHost));
  EXPECT(source == target);

  target.assign(kCount, 0);
  EXPECT_OK(cudaMemcpy(first + 1, source.data(), kBytes - 4, cudaMemcpyDefault));
  EXPECT_OK(cudaMemcpy(target.data() + 1, first + 1, kBytes - 4, cudaMemcpyDefault));
  EXPECT_EQUAL(target[0], 0);
  bool shifted = true;
  for (size_t at = 1; at < kCount; ++at) shifted = shifted && target[at] == source[at - 1];
  EXPECT(shifted);

  EXPECT_OK(cudaMemcpy(target.data(), source.data(), kBytes, cudaMemcpyHostToHost));
  EXPECT(source == target);

  // Odd sizes and places, byte by byte.
  std::vector<char> bytes(1001, 'a');
  char* odd = reinterpret_cast<char*>(second) + 3;
  EXPECT_OK(cudaMemcpy(odd, bytes.data(), 1001, cudaMemcpyHostToDevice));
  std::vector<char> back(1001);
  EXPECT_OK(cudaMemcpy(back.data(), odd, 1001, cudaMemcpyDeviceToHost));
  EXPECT(bytes == back);

  EXPECT_OK(cudaMemcpy(nullptr, nullptr, 0, cudaMemcpyDefault));
  EXPECT_ERROR(cudaMemcpy(first, source.data(), 4, static_cast<cudaMemcpyKind>(7)),
               cudaErrorInvalidMemcpyDirection);
  EXPECT_ERROR(cudaMemcpy(nullptr, source.data(), 4, cudaMemcpyHostToDevice),
               cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMemcpy(first + kCount, source.data(), size_t{1} << 40, cudaMemcpyHostToDevice),
               cudaErrorInvalidValue);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(first));
  EXPECT_OK(cudaFree(second));
  return failures();
}
