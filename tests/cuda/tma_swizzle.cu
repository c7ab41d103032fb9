// The swizzles of tensor maps: 16-byte chunks of shared memory change places with the bits of the
// line that they are in.

#include <vector>

#include "tensor_maps.h"

constexpr unsigned kRows = 32, kBytes = 128 * kRows;

__global__ void load_raw(const __grid_constant__ CUtensorMap map, unsigned bytes, uint16_t* out) {
  __shared__ alignas(1024) uint16_t tile[kBytes / 2];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) {
    init_barrier(&barrier, 1);
    expect_bytes(&barrier, bytes);
    load_2d(tile, &map, 0, 0, &barrier);
  }
  __syncthreads();
  wait_phase(&barrier, 0);
  for (unsigned i = threadIdx.x; i < bytes / 2; i += blockDim.x) out[i] = tile[i];
}

void check_swizzle(CUtensorMapSwizzle swizzle, unsigned width_bytes, unsigned bits) {
  unsigned width = width_bytes / 2, count = width * kRows;
  std::vector<uint16_t> source(count), tile(count);
  for (unsigned i = 0; i < count; ++i) source[i] = uint16_t(i * 7 + 3);
  uint16_t *from, *out;
  REQUIRE_OK(cudaMalloc(&from, count * 2));
  REQUIRE_OK(cudaMalloc(&out, count * 2));
  REQUIRE_OK(cudaMemcpy(from, source.data(), count * 2, cudaMemcpyHostToDevice));
  TensorShape shape = {2, {width, kRows}, {width, kRows}};
  shape.swizzle = swizzle;
  load_raw<<<1, 32>>>(tiled_map(CU_TENSOR_MAP_DATA_TYPE_UINT16, 2, from, shape), count * 2, out);
  REQUIRE_OK(cudaMemcpy(tile.data(), out, count * 2, cudaMemcpyDeviceToHost));
  for (unsigned i = 0; i < count; ++i) {
    unsigned address = i * 2, line = address / 128;
    unsigned place = address ^ (line & ((1u << bits) - 1)) * 16;
    EXPECT_EQUAL(tile[place / 2], source[i]);
  }
  EXPECT_OK(cudaFree(from));
  EXPECT_OK(cudaFree(out));
}

int main() {
  if (!has_tensor_maps()) return 77;
  check_swizzle(CU_TENSOR_MAP_SWIZZLE_NONE, 128, 0);
  check_swizzle(CU_TENSOR_MAP_SWIZZLE_32B, 32, 1);
  check_swizzle(CU_TENSOR_MAP_SWIZZLE_64B, 64, 2);
  check_swizzle(CU_TENSOR_MAP_SWIZZLE_128B, 128, 3);
  return failures();
}
