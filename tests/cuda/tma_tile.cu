// Boxes of tensors of one to five dimensions: loads with zeros or NaN outside the tensor, stores
// that leave what is outside alone. The wrappers of cuda::ptx are used as they are.

#include <cuda/barrier>
#include <cuda/ptx>

#include <cmath>
#include <vector>

#include "tensor_maps.h"

namespace ptx = cuda::ptx;

constexpr unsigned kMaxElements = 1024;

template <int rank>
__device__ void copy_box(const CUtensorMap& from, const CUtensorMap& to, const int (&at)[rank],
                         float* out, unsigned elements) {
  __shared__ alignas(128) float tile[kMaxElements];
  __shared__ uint64_t barrier;
  if (threadIdx.x == 0) init_barrier(&barrier, 1);
  __syncthreads();
  if (threadIdx.x == 0) {
    ptx::cp_async_bulk_tensor(ptx::space_cluster, ptx::space_global, tile, &from, at, &barrier);
    ptx::mbarrier_arrive_expect_tx(ptx::sem_release, ptx::scope_cta, ptx::space_shared, &barrier,
                                   elements * 4);
  }
  while (!ptx::mbarrier_try_wait_parity(&barrier, 0)) {
  }
  for (unsigned i = threadIdx.x; i < elements; i += blockDim.x) out[i] = tile[i];
  __syncthreads();
  if (threadIdx.x != 0) return;
  ptx::fence_proxy_async(ptx::space_shared);
  ptx::cp_async_bulk_tensor(ptx::space_global, ptx::space_shared, &to, at, tile);
  ptx::cp_async_bulk_commit_group();
  ptx::cp_async_bulk_wait_group_read(ptx::n32_t<0>{});
}

template <int rank>
__global__ void copy_kernel(const __grid_constant__ CUtensorMap from,
                            const __grid_constant__ CUtensorMap to, int first, float* out,
                            unsigned elements) {
  int at[rank];
  for (int i = 0; i < rank; ++i) at[i] = first + i;
  copy_box<rank>(from, to, at, out, elements);
}

template <int rank>
void check_rank(int first, CUtensorMapFloatOOBfill fill) {
  TensorShape shape = {rank, {12, 7, 5, 4, 3}, {8, 4, 4, 2, 2}};
  shape.fill = fill;
  if (rank > 2) shape.element_strides[2] = 2;
  unsigned count = 1, elements = 1;
  for (int i = 0; i < rank; ++i) {
    count *= unsigned(shape.sizes[i]);
    elements *= (shape.box[i] + shape.element_strides[i] - 1) / shape.element_strides[i];
  }
  std::vector<float> source(count), target(count), tile(elements);
  for (unsigned i = 0; i < count; ++i) source[i] = float(i + 1);
  float *from, *to, *out;
  REQUIRE_OK(cudaMalloc(&from, count * 4));
  REQUIRE_OK(cudaMalloc(&to, count * 4));
  REQUIRE_OK(cudaMalloc(&out, elements * 4));
  REQUIRE_OK(cudaMemcpy(from, source.data(), count * 4, cudaMemcpyHostToDevice));
  REQUIRE_OK(cudaMemset(to, 0, count * 4));
  auto type = CU_TENSOR_MAP_DATA_TYPE_FLOAT32;
  copy_kernel<rank><<<1, 64>>>(tiled_map(type, 4, from, shape), tiled_map(type, 4, to, shape),
                               first, out, elements);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE_OK(cudaMemcpy(tile.data(), out, elements * 4, cudaMemcpyDeviceToHost));
  REQUIRE_OK(cudaMemcpy(target.data(), to, count * 4, cudaMemcpyDeviceToHost));
  std::vector<float> stored(count);
  for (unsigned n = 0; n < elements; ++n) {
    unsigned left = n;
    long long index = 0, pitch = 1;
    bool inside = true;
    for (int i = 0; i < rank; ++i) {
      unsigned step = shape.element_strides[i], steps = (shape.box[i] + step - 1) / step;
      long long place = first + i + (left % steps) * (long long)step,
                size = (long long)shape.sizes[i];
      left /= steps;
      inside &= place >= 0 && place < size;
      index += place * pitch;
      pitch *= size;
    }
    if (inside) {
      EXPECT_EQUAL(tile[n], source[index]);
      stored[index] = source[index];
    } else if (fill == CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) {
      EXPECT_EQUAL(tile[n], 0);
    } else {
      EXPECT(std::isnan(tile[n]));
    }
  }
  for (unsigned i = 0; i < count; ++i) EXPECT_EQUAL(target[i], stored[i]);
  for (float* buffer : {from, to, out}) EXPECT_OK(cudaFree(buffer));
}

int main() {
  if (!has_tensor_maps()) return 77;
  for (int first : {-2, 0, 3}) {
    auto fill = first == 3 ? CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA
                           : CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
    check_rank<1>(first, fill);
    check_rank<2>(first, fill);
    check_rank<3>(first, fill);
    check_rank<4>(first, fill);
    check_rank<5>(first, fill);
  }
  return failures();
}
