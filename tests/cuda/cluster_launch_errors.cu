// What launches of clusters are refused for, and that a refused launch breaks nothing.

#include "check.h"

__global__ void fill(unsigned* out) {
  if (threadIdx.x == 0) atomicAdd(out, 1);
}
__global__ void __cluster_dims__(2, 2, 1) squares(unsigned* out) {
  if (threadIdx.x == 0) atomicAdd(out, 1);
}

template <class Kernel>
cudaError_t launch(Kernel* kernel, dim3 grid, dim3 cluster, unsigned* out) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster.x, cluster.y, cluster.z};
  cudaLaunchConfig_t config = {};
  config.gridDim = grid;
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  cudaError_t error = cudaLaunchKernelEx(&config, kernel, out);
  // The error of a launch is also the last one.
  EXPECT_ERROR(cudaGetLastError(), error);
  return error;
}

int main() {
  int supported = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrClusterLaunch, 0));
  if (supported == 0) return 77;
  unsigned* out;
  REQUIRE_OK(cudaMalloc(&out, sizeof *out));
  REQUIRE_OK(cudaMemset(out, 0, sizeof *out));

  // The grid is no multiple of the cluster, in one direction or another.
  EXPECT(launch(fill, dim3(8), dim3(3), out) != cudaSuccess);
  EXPECT(launch(fill, dim3(8, 3), dim3(2, 2), out) != cudaSuccess);
  // Too many blocks.
  EXPECT(launch(fill, dim3(32), dim3(16), out) != cudaSuccess);
  EXPECT(launch(fill, dim3(4, 4, 4), dim3(4, 2, 2), out) != cudaSuccess);
  // No extent.
  EXPECT(launch(fill, dim3(8), dim3(2, 0, 1), out) != cudaSuccess);
  // Another shape than the kernel's own, though of as many blocks.
  EXPECT(launch(squares, dim3(4, 4), dim3(4, 1), out) != cudaSuccess);
  squares<<<dim3(3, 4), 32>>>(out);
  EXPECT(cudaGetLastError() != cudaSuccess);

  EXPECT_OK(launch(fill, dim3(8), dim3(8), out));
  EXPECT_OK(launch(fill, dim3(4, 4, 4), dim3(2, 2, 2), out));
  EXPECT_OK(launch(squares, dim3(4, 4), dim3(2, 2), out));
  squares<<<dim3(2, 2), 32>>>(out);
  EXPECT_OK(cudaGetLastError());
  unsigned blocks = 0;
  REQUIRE_OK(cudaMemcpy(&blocks, out, sizeof blocks, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(blocks, 8 + 64 + 16 + 4);
  EXPECT_OK(cudaFree(out));
  return failures();
}
