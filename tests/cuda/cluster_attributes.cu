// Attributes and occupancy of clusters: shapes that a kernel requires, sizes beyond the portable
// one, scheduling policies, how many clusters fit.

#include <cooperative_groups.h>

#include "check.h"

namespace cg = cooperative_groups;

__global__ void any_shape(unsigned* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = cg::this_cluster().num_blocks();
}
__global__ void __cluster_dims__(2, 1, 1) pairs(unsigned* out) {
  if (threadIdx.x == 0) out[blockIdx.x] = cg::this_cluster().num_blocks();
}

cudaLaunchAttribute cluster_of(unsigned blocks) {
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {blocks, 1, 1};
  return attribute;
}

/// Launches any_shape with 32 blocks and returns the cluster's size, 0 where the launch fails.
unsigned launched_size(cudaLaunchConfig_t config, unsigned* out) {
  unsigned size = 0;
  EXPECT_OK(cudaMemset(out, 0, sizeof *out));
  if (cudaLaunchKernelEx(&config, any_shape, out) != cudaSuccess) {
    cudaGetLastError();
    return 0;
  }
  EXPECT_OK(cudaMemcpy(&size, out, sizeof size, cudaMemcpyDeviceToHost));
  return size;
}

int main() {
  int supported = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&supported, cudaDevAttrClusterLaunch, 0));
  if (supported == 0) return 77;
  unsigned* out;
  REQUIRE_OK(cudaMalloc(&out, 32 * sizeof(unsigned)));

  cudaFuncAttributes of;
  REQUIRE_OK(cudaFuncGetAttributes(&of, pairs));
  EXPECT_EQUAL(of.clusterDimMustBeSet, 1);
  EXPECT_EQUAL(of.requiredClusterWidth, 2);
  EXPECT_EQUAL(of.requiredClusterDepth, 1);
  EXPECT_ERROR(cudaFuncSetAttribute(pairs, cudaFuncAttributeRequiredClusterWidth, 4),
               cudaErrorNotPermitted);
  REQUIRE_OK(cudaFuncGetAttributes(&of, any_shape));
  EXPECT_EQUAL(of.clusterDimMustBeSet, 0);
  EXPECT_EQUAL(of.nonPortableClusterSizeAllowed, 0);

  cudaLaunchAttribute attributes[2] = {cluster_of(16)};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(32);
  config.blockDim = dim3(64);
  config.attrs = attributes;
  config.numAttrs = 1;
  int count = 0;
  REQUIRE_OK(cudaOccupancyMaxPotentialClusterSize(&count, any_shape, &config));
  EXPECT_EQUAL(count, 8);
  EXPECT_EQUAL(launched_size(config, out), 0);
  REQUIRE_OK(cudaFuncSetAttribute(any_shape, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  EXPECT_EQUAL(launched_size(config, out), 16);
  REQUIRE_OK(cudaOccupancyMaxPotentialClusterSize(&count, any_shape, &config));
  EXPECT(count >= 8 && count <= 16);

  // One block of this size fills an SM.
  config.blockDim = dim3(1024);
  config.dynamicSmemBytes = 200 * 1024;
  REQUIRE_OK(
      cudaFuncSetAttribute(any_shape, cudaFuncAttributeMaxDynamicSharedMemorySize, 200 * 1024));
  int sms = 0, pairs_at_once = 0, quads_at_once = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&sms, cudaDevAttrMultiProcessorCount, 0));
  attributes[0] = cluster_of(2);
  REQUIRE_OK(cudaOccupancyMaxActiveClusters(&pairs_at_once, any_shape, &config));
  attributes[0] = cluster_of(4);
  REQUIRE_OK(cudaOccupancyMaxActiveClusters(&quads_at_once, any_shape, &config));
  EXPECT(pairs_at_once > 0 && pairs_at_once <= sms / 2);
  EXPECT(quads_at_once > 0 && quads_at_once <= pairs_at_once / 2);
  EXPECT_ERROR(cudaOccupancyMaxActiveClusters(nullptr, any_shape, &config), cudaErrorInvalidValue);
  cudaGetLastError();

  config.blockDim = dim3(64);
  config.dynamicSmemBytes = 0;
  attributes[1].id = cudaLaunchAttributeClusterSchedulingPolicyPreference;
  attributes[1].val.clusterSchedulingPolicyPreference = cudaClusterSchedulingPolicySpread;
  config.numAttrs = 2;
  EXPECT_EQUAL(launched_size(config, out), 4);
  config.numAttrs = 0;
  EXPECT_EQUAL(launched_size(config, out), 1);
  EXPECT_OK(cudaFree(out));
  return failures();
}
