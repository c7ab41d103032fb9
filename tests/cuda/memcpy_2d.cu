// Copies of rectangles with pitches.

#include <vector>

#include "check.h"

int main() {
  constexpr size_t kWidth = 1000, kHeight = 300, kHostPitch = 1100;
  std::vector<unsigned char> source(kHostPitch * kHeight), target(kHostPitch * kHeight, 0xee);
  for (size_t at = 0; at < source.size(); ++at) source[at] = static_cast<unsigned char>(at * 31);

  unsigned char* device;
  size_t pitch = 0;
  REQUIRE_OK(cudaMallocPitch(&device, &pitch, kWidth, kHeight));
  EXPECT(pitch >= kWidth);
  EXPECT_EQUAL(pitch % 256, 0);

  EXPECT_OK(cudaMemset2D(device, pitch, 0x55, pitch, kHeight));
  EXPECT_OK(cudaMemcpy2D(device, pitch, source.data(), kHostPitch, kWidth, kHeight,
                         cudaMemcpyHostToDevice));
  EXPECT_OK(cudaMemcpy2D(target.data(), kHostPitch, device, pitch, kWidth, kHeight,
                         cudaMemcpyDeviceToHost));
  bool copied = true, gaps = true;
  for (size_t row = 0; row < kHeight; ++row) {
    for (size_t at = 0; at < kHostPitch; ++at) {
      unsigned char value = target[row * kHostPitch + at];
      if (at < kWidth) copied = copied && value == source[row * kHostPitch + at];
      if (at >= kWidth) gaps = gaps && value == 0xee;
    }
  }
  EXPECT(copied);
  EXPECT(gaps);

  // The device's own gaps kept what the fill put there.
  std::vector<unsigned char> row(pitch);
  EXPECT_OK(cudaMemcpy(row.data(), device + pitch, pitch, cudaMemcpyDeviceToHost));
  bool kept = true;
  for (size_t at = kWidth; at < pitch; ++at) kept = kept && row[at] == 0x55;
  EXPECT(kept);

  unsigned char* packed;
  REQUIRE_OK(cudaMalloc(&packed, kWidth * kHeight));
  EXPECT_OK(
      cudaMemcpy2DAsync(packed, kWidth, device, pitch, kWidth, kHeight, cudaMemcpyDeviceToDevice));
  EXPECT_OK(cudaMemset2DAsync(packed, kWidth, 7, 10, 2));
  std::vector<unsigned char> all(kWidth * kHeight);
  EXPECT_OK(cudaMemcpy(all.data(), packed, all.size(), cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(all[5], 7);
  EXPECT_EQUAL(all[kWidth + 9], 7);
  EXPECT_EQUAL(all[10], source[10]);
  EXPECT_EQUAL(all[2 * kWidth + 5], source[2 * kHostPitch + 5]);

  EXPECT_ERROR(
      cudaMemcpy2D(device, 10, source.data(), kHostPitch, kWidth, 2, cudaMemcpyHostToDevice),
      cudaErrorInvalidPitchValue);
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaFree(packed));
  return failures();
}
