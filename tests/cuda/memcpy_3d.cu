// Three-dimensional copies and fills: boxes out of larger ones, between host and device, and
// batches of copies.

#include <cstring>
#include <vector>

#include "check.h"

namespace {

constexpr int kWidth = 40, kHeight = 12, kDepth = 5;

int value_at(int x, int y, int z) { return 10000 * z + 100 * y + x; }

cudaPitchedPtr plain(void* memory, size_t width, size_t height) {
  return make_cudaPitchedPtr(memory, width * sizeof(int), width * sizeof(int), height);
}

cudaMemcpy3DParms parms(cudaPitchedPtr dst, cudaPitchedPtr src, size_t width, size_t height,
                        size_t depth, cudaMemcpyKind kind) {
  cudaMemcpy3DParms result = {};
  result.dstPtr = dst;
  result.srcPtr = src;
  result.extent = make_cudaExtent(width * sizeof(int), height, depth);
  result.kind = kind;
  return result;
}

void copy_boxes() {
  std::vector<int> host(kWidth * kHeight * kDepth), back(host.size(), -1);
  for (int z = 0; z < kDepth; ++z)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) host[(z * kHeight + y) * kWidth + x] = value_at(x, y, z);
  cudaPitchedPtr device;
  REQUIRE_OK(cudaMalloc3D(&device, make_cudaExtent(kWidth * sizeof(int), kHeight, kDepth)));
  cudaMemcpy3DParms all = parms(device, plain(host.data(), kWidth, kHeight), kWidth, kHeight,
                                kDepth, cudaMemcpyHostToDevice);
  EXPECT_OK(cudaMemcpy3D(&all));
  cudaMemcpy3DParms whole = parms(plain(back.data(), kWidth, kHeight), device, kWidth, kHeight,
                                  kDepth, cudaMemcpyDeviceToHost);
  EXPECT_OK(cudaMemcpy3D(&whole));
  EXPECT(host == back);

  // A box from the middle, to the corner of another array.
  constexpr int kX = 7, kY = 3, kZ = 2, kW = 11, kH = 6, kD = 3;
  std::vector<int> box(kW * kH * kD, -1);
  cudaMemcpy3DParms part =
      parms(plain(box.data(), kW, kH), device, kW, kH, kD, cudaMemcpyDeviceToHost);
  part.srcPos = make_cudaPos(kX * sizeof(int), kY, kZ);
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreate(&stream));
  EXPECT_OK(cudaMemcpy3DAsync(&part, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  bool right = true;
  for (int z = 0; z < kD; ++z)
    for (int y = 0; y < kH; ++y)
      for (int x = 0; x < kW; ++x)
        right = right && box[(z * kH + y) * kW + x] == value_at(kX + x, kY + y, kZ + z);
  EXPECT(right);

  // Inside the device, then a fill of part of it.
  cudaPitchedPtr other;
  REQUIRE_OK(cudaMalloc3D(&other, make_cudaExtent(kWidth * sizeof(int), kHeight, kDepth)));
  cudaMemcpy3DParms inside =
      parms(other, device, kWidth, kHeight, kDepth, cudaMemcpyDeviceToDevice);
  EXPECT_OK(cudaMemcpy3D(&inside));
  EXPECT_OK(cudaMemset3D(other, 0x11, make_cudaExtent(kWidth * sizeof(int), kHeight - 1, 2)));
  whole.srcPtr = other;
  EXPECT_OK(cudaMemcpy3D(&whole));
  right = true;
  for (int z = 0; z < kDepth; ++z)
    for (int y = 0; y < kHeight; ++y)
      for (int x = 0; x < kWidth; ++x) {
        int expected = z < 2 && y < kHeight - 1 ? 0x11111111 : value_at(x, y, z);
        right = right && back[(z * kHeight + y) * kWidth + x] == expected;
      }
  EXPECT(right);
  EXPECT_ERROR(cudaMemcpy3D(nullptr), cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(device.ptr));
  EXPECT_OK(cudaFree(other.ptr));
}

void copy_batches() {
  constexpr int kBatch = 4;
  cudaStream_t stream;
  REQUIRE_OK(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  int *device, *pinned;
  REQUIRE_OK(cudaMalloc(&device, 2 * kBatch * 64 * sizeof(int)));
  REQUIRE_OK(cudaMallocHost(&pinned, 2 * kBatch * 64 * sizeof(int)));
  for (int at = 0; at < kBatch * 64; ++at) pinned[at] = at;
  void* dsts[kBatch];
  const void* srcs[kBatch];
  size_t sizes[kBatch], first = 0;
  for (int at = 0; at < kBatch; ++at) {
    dsts[at] = device + 128 * at;
    srcs[at] = pinned + 64 * at;
    sizes[at] = 64 * sizeof(int);
  }
  cudaMemcpyAttributes attributes = {};
  attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
  EXPECT_OK(cudaMemcpyBatchAsync(dsts, srcs, sizes, kBatch, &attributes, &first, 1, stream));
  EXPECT_OK(cudaStreamSynchronize(stream));
  for (int at = 0; at < kBatch; ++at) {
    int found[64];
    EXPECT_OK(cudaMemcpy(found, device + 128 * at, sizeof found, cudaMemcpyDeviceToHost));
    EXPECT(memcmp(found, pinned + 64 * at, sizeof found) == 0);
  }
  EXPECT_ERROR(cudaMemcpyBatchAsync(dsts, srcs, sizes, kBatch, &attributes, &first, 0, stream),
               cudaErrorInvalidValue);
  cudaGetLastError();
  EXPECT_OK(cudaStreamDestroy(stream));
  EXPECT_OK(cudaFree(device));
  EXPECT_OK(cudaFreeHost(pinned));
}

}  // namespace

int main() {
  copy_boxes();
  copy_batches();
  return failures();
}
