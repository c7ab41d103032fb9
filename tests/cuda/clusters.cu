// Thread block clusters: the launch attribute, a kernel that requires a shape, and what is refused.

#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void ranks_in_cluster(unsigned* out) {
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) out[blockIdx.x] = cluster.block_rank() * 100 + cluster.num_blocks();
}

__global__ void __cluster_dims__(2, 1, 1) read_neighbour(unsigned* out) {
  __shared__ unsigned value;
  cg::cluster_group cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = blockIdx.x + 10;
  cluster.sync();
  if (threadIdx.x == 0)
    out[blockIdx.x] = *cluster.map_shared_rank(&value, 1 - cluster.block_rank());
  cluster.sync();
}

int main() {
  int supported = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrClusterLaunch, 0));
  if (supported == 0) {
    fprintf(stderr, "needs clusters\n");
    return 77;
  }
  unsigned *out, host[8];
  REQUIRE_OK(cudaMalloc(&out, sizeof host));
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(8);
  config.blockDim = dim3(32);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {4, 1, 1};
  config.attrs = &attribute;
  config.numAttrs = 1;
  REQUIRE_OK(cudaLaunchKernelEx(&config, ranks_in_cluster, out));
  REQUIRE_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (unsigned at = 0; at < 8; ++at) EXPECT_EQUAL(host[at], at % 4 * 100 + 4);

  read_neighbour<<<8, 32>>>(out);
  REQUIRE_OK(cudaGetLastError());
  REQUIRE_OK(cudaMemcpy(host, out, sizeof host, cudaMemcpyDeviceToHost));
  for (unsigned at = 0; at < 8; ++at) EXPECT_EQUAL(host[at], (at ^ 1) + 10);

  attribute.val.clusterDim = {3, 1, 1};
  EXPECT(cudaLaunchKernelEx(&config, ranks_in_cluster, out) != cudaSuccess);
  attribute.val.clusterDim = {16, 1, 1};
  config.gridDim = dim3(16);
  EXPECT(cudaLaunchKernelEx(&config, ranks_in_cluster, out) != cudaSuccess);
  cudaGetLastError();
  EXPECT_OK(cudaDeviceSynchronize());
  EXPECT_OK(cudaFree(out));
  return failures();
}
