// Reductions of boxes into tensors in global memory, by many blocks at once.

#include <vector>

#include "tensor_maps.h"

constexpr unsigned kWidth = 16, kHeight = 8, kCount = kWidth * kHeight, kBlocks = 6;

#define REDUCE(operation)                                                     \
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta." operation \
               ".tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(&map),          \
               "r"(0), "r"(0), "r"(shared_address(tile))                      \
               : "memory")

__global__ void reduce(const __grid_constant__ CUtensorMap map, int operation) {
  __shared__ alignas(128) unsigned tile[kCount];
  for (unsigned i = threadIdx.x; i < kCount; i += blockDim.x) tile[i] = (i + 5) << blockIdx.x;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x != 0) return;
  switch (operation) {
    case 0:
      REDUCE("add");
      break;
    case 1:
      REDUCE("min");
      break;
    case 2:
      REDUCE("max");
      break;
    case 3:
      REDUCE("and");
      break;
    case 4:
      REDUCE("or");
      break;
    case 5:
      REDUCE("xor");
      break;
    case 6:
      REDUCE("inc");
      break;
    case 7:
      REDUCE("dec");
      break;
  }
  finish_stores();
}

unsigned combined(int operation, unsigned a, unsigned b) {
  switch (operation) {
    case 0:
      return a + b;
    case 1:
      return a < b ? a : b;
    case 2:
      return a > b ? a : b;
    case 3:
      return a & b;
    case 4:
      return a | b;
    case 5:
      return a ^ b;
    case 6:
      return a >= b ? 0 : a + 1;
    default:
      return a == 0 || a > b ? b : a - 1;
  }
}

int main() {
  if (!has_tensor_maps()) return 77;
  unsigned* data;
  REQUIRE_OK(cudaMalloc(&data, kCount * 4));
  TensorShape shape = {2, {kWidth, kHeight}, {kWidth, kHeight}};
  CUtensorMap map = tiled_map(CU_TENSOR_MAP_DATA_TYPE_UINT32, 4, data, shape);
  for (int operation = 0; operation < 8; ++operation) {
    std::vector<unsigned> values(kCount), result(kCount);
    for (unsigned i = 0; i < kCount; ++i) values[i] = i * 3;
    REQUIRE_OK(cudaMemcpy(data, values.data(), kCount * 4, cudaMemcpyHostToDevice));
    // inc and dec depend on the order of blocks: one at a time.
    unsigned blocks = operation < 6 ? kBlocks : 1;
    reduce<<<blocks, 64>>>(map, operation);
    REQUIRE_OK(cudaMemcpy(result.data(), data, kCount * 4, cudaMemcpyDeviceToHost));
    for (unsigned i = 0; i < kCount; ++i) {
      for (unsigned b = 0; b < blocks; ++b)
        values[i] = combined(operation, values[i], (i + 5) << b);
      EXPECT_EQUAL(result[i], values[i]);
    }
  }
  EXPECT_OK(cudaFree(data));
  return failures();
}
