#include "simulator/shims/client/launch.h"

#include <cuda_occupancy.h>
#include <gtest/gtest.h>

#include "simulator/protocol/occupancy.h"
#include "simulator/shims/testing/fake_daemon.h"

namespace cb::sim::client {
namespace {

class LaunchCheck : public ::testing::Test {
 protected:
  LaunchCheck() {
    kernel.registers = 32;
    kernel.max_threads = 1024;
    request.block = dim3(128);
    request.grid = dim3(10);
  }
  cudaError_t check() { return check_launch(FakeDaemon::device(), kernel, settings, &request); }

  KernelInfo kernel;
  KernelSettings settings;
  LaunchRequest request;
};

TEST_F(LaunchCheck, TakesAnOrdinaryLaunch) {
  EXPECT_EQ(check(), cudaSuccess);
  EXPECT_EQ(request.cluster[0], 1u);
}

TEST_F(LaunchCheck, RefusesDimensionsThatHardwareLacks) {
  for (dim3 grid :
       {dim3(0), dim3(1, 0), dim3(1, 1, 0), dim3(0x80000000u), dim3(1, 65536), dim3(1, 1, 65536)}) {
    request.grid = grid;
    EXPECT_EQ(check(), cudaErrorInvalidConfiguration);
  }
  request.grid = dim3(0x7fffffff, 65535, 65535);
  EXPECT_EQ(check(), cudaSuccess);
  for (dim3 block : {dim3(0), dim3(1025), dim3(1, 1025), dim3(1, 1, 65), dim3(32, 33)}) {
    request.block = block;
    EXPECT_EQ(check(), cudaErrorInvalidConfiguration);
  }
  request.block = dim3(32, 32);
  EXPECT_EQ(check(), cudaSuccess);
}

TEST_F(LaunchCheck, RefusesMoreThreadsThanRegistersOrLaunchBoundsAllow) {
  kernel.registers = 128;
  request.block = dim3(512);
  EXPECT_EQ(check(), cudaSuccess);
  request.block = dim3(544);
  EXPECT_EQ(check(), cudaErrorLaunchOutOfResources);
  kernel.registers = 32;
  kernel.max_threads = 256;
  request.block = dim3(257);
  EXPECT_EQ(check(), cudaErrorLaunchOutOfResources);
}

TEST_F(LaunchCheck, LargeSharedMemoryNeedsTheOptIn) {
  kernel.static_shared_bytes = 1000;
  request.dynamic_shared_bytes = 49152 - 1000;
  EXPECT_EQ(check(), cudaSuccess);
  ++request.dynamic_shared_bytes;
  EXPECT_EQ(check(), cudaErrorInvalidValue);
  settings.max_dynamic_shared_bytes = 100'000;
  EXPECT_EQ(check(), cudaSuccess);
  request.dynamic_shared_bytes = 100'001;
  EXPECT_EQ(check(), cudaErrorInvalidValue);
}

TEST_F(LaunchCheck, ACooperativeGridMustFitAtOnce) {
  request.cooperative = true;
  request.block = dim3(1024);
  request.grid = dim3(2 * 132);
  EXPECT_EQ(check(), cudaSuccess);
  request.grid = dim3(2 * 132 + 1);
  EXPECT_EQ(check(), cudaErrorCooperativeLaunchTooLarge);
  request.cooperative = false;
  EXPECT_EQ(check(), cudaSuccess);
}

TEST_F(LaunchCheck, ClustersDivideTheGridAndStayPortable) {
  request.cluster[0] = 2;
  request.cluster[1] = request.cluster[2] = 1;
  EXPECT_EQ(check(), cudaSuccess);
  request.cluster[0] = 4;
  EXPECT_EQ(check(), cudaErrorInvalidClusterSize);
  request.grid = dim3(32);
  request.cluster[0] = 16;
  EXPECT_EQ(check(), cudaErrorInvalidClusterSize);
  settings.nonportable_cluster = true;
  EXPECT_EQ(check(), cudaSuccess);
  request.cluster[0] = 32;
  EXPECT_EQ(check(), cudaErrorInvalidClusterSize);
}

TEST_F(LaunchCheck, AKernelsOwnClusterIsTakenAndCannotBeChanged) {
  kernel.required_cluster[0] = 2;
  kernel.required_cluster[1] = kernel.required_cluster[2] = 1;
  EXPECT_EQ(check(), cudaSuccess);
  EXPECT_EQ(request.cluster[0], 2u);
  request.cluster[0] = 5;
  EXPECT_EQ(check(), cudaErrorInvalidClusterSize);
}

TEST_F(LaunchCheck, AShapeThatIsSetAtRunTimeIsRequired) {
  settings.required_cluster[0] = 5;
  EXPECT_EQ(check(), cudaErrorInvalidClusterSize);
  settings.required_cluster[1] = settings.required_cluster[2] = 1;
  EXPECT_EQ(check(), cudaSuccess);
  EXPECT_EQ(request.cluster[0], 5u);
  EXPECT_TRUE(request.explicit_cluster);
}

TEST_F(LaunchCheck, AnExplicitClusterMustBeNamed) {
  kernel.explicit_cluster = 1;
  EXPECT_EQ(check(), cudaErrorInvalidClusterSize);
  request.cluster[0] = request.cluster[1] = request.cluster[2] = 1;
  EXPECT_EQ(check(), cudaSuccess);
  EXPECT_TRUE(request.explicit_cluster);
}

TEST_F(LaunchCheck, AKernelMayBoundItsClusters) {
  kernel.max_cluster_blocks = 2;
  request.cluster[0] = 5;
  request.cluster[1] = request.cluster[2] = 1;
  EXPECT_EQ(check(), cudaErrorInvalidClusterSize);
  request.cluster[0] = 2;
  EXPECT_EQ(check(), cudaSuccess);
}

TEST_F(LaunchCheck, AClusterMustFitAGpc) {
  DeviceInfo device = FakeDaemon::device();
  for (uint32_t& sms : device.gpc_sms) sms = 2;
  request.grid = dim3(40);
  request.block = dim3(1024);
  request.cluster[1] = request.cluster[2] = 1;
  kernel.registers = 64;
  for (uint32_t blocks : {2u, 5u}) {
    request.cluster[0] = blocks;
    EXPECT_EQ(check_launch(device, kernel, settings, &request),
              blocks == 2 ? cudaSuccess : cudaErrorInvalidClusterSize);
  }
}

TEST_F(LaunchCheck, CooperativeClustersAreAllResident) {
  request.block = dim3(1024);
  kernel.registers = 64;
  request.cooperative = true;
  request.cluster[0] = 4;
  request.cluster[1] = request.cluster[2] = 1;
  // Four of each GPC's 16 or 18 SMs at a time.
  request.grid = dim3(32 * 4);
  EXPECT_EQ(check(), cudaSuccess);
  request.grid = dim3(33 * 4);
  EXPECT_EQ(check(), cudaErrorCooperativeLaunchTooLarge);
}

TEST_F(LaunchCheck, ClustersNeedHopper) {
  DeviceInfo ampere = FakeDaemon::device();
  ampere.compute_major = 8;
  request.cluster[0] = 2;
  request.cluster[1] = request.cluster[2] = 1;
  EXPECT_EQ(check_launch(ampere, kernel, settings, &request), cudaErrorNotSupported);
}

/// NVIDIA's calculator from the toolkit, for the same device.
int toolkit_blocks_per_sm(const DeviceInfo& device, const KernelInfo& kernel, int threads,
                          size_t dynamic_shared_bytes) {
  cudaOccDeviceProp properties;
  properties.computeMajor = static_cast<int>(device.compute_major);
  properties.computeMinor = static_cast<int>(device.compute_minor);
  properties.maxThreadsPerBlock = 1024;
  properties.maxThreadsPerMultiprocessor = static_cast<int>(device.max_threads_per_sm);
  properties.regsPerBlock = static_cast<int>(device.registers_per_sm);
  properties.regsPerMultiprocessor = static_cast<int>(device.registers_per_sm);
  properties.warpSize = 32;
  properties.sharedMemPerBlock = device.shared_per_block_bytes;
  properties.sharedMemPerMultiprocessor = device.shared_per_sm_bytes;
  properties.numSms = static_cast<int>(device.num_sms);
  properties.sharedMemPerBlockOptin = device.shared_per_block_optin_bytes;
  properties.reservedSharedMemPerBlock = device.reserved_shared_per_block_bytes;
  cudaOccFuncAttributes attributes;
  attributes.maxThreadsPerBlock = 1024;
  attributes.numRegs = static_cast<int>(kernel.registers);
  attributes.sharedSizeBytes = kernel.static_shared_bytes;
  attributes.partitionedGCConfig = PARTITIONED_GC_OFF;
  attributes.shmemLimitConfig = FUNC_SHMEM_LIMIT_OPTIN;
  attributes.maxDynamicSharedSizeBytes = device.shared_per_block_optin_bytes;
  attributes.numBlockBarriers = 1;
  cudaOccDeviceState state;
  state.carveoutConfig = SHAREDMEM_CARVEOUT_MAX_SHARED;
  cudaOccResult result = {};
  cudaOccMaxActiveBlocksPerMultiprocessor(&result, &properties, &attributes, &state, threads,
                                          dynamic_shared_bytes);
  return result.activeBlocksPerMultiprocessor;
}

TEST(Occupancy, IsThatOfTheToolkitsCalculator) {
  const DeviceInfo& device = FakeDaemon::device();
  for (uint32_t registers : {16u, 24u, 32u, 40u, 63u, 64u, 96u, 128u, 168u, 255u}) {
    for (int threads : {1, 32, 33, 64, 96, 128, 160, 256, 384, 512, 768, 1024}) {
      for (uint32_t fixed : {0u, 1u, 4096u, 40'000u}) {
        for (size_t dynamic : {size_t{0}, size_t{1000}, size_t{65'536}, size_t{180'000}}) {
          KernelInfo kernel;
          kernel.registers = registers;
          kernel.static_shared_bytes = fixed;
          BlockShape shape;
          shape.threads = static_cast<uint32_t>(threads);
          shape.registers_per_thread = registers;
          shape.shared_bytes = fixed + dynamic;
          EXPECT_EQ(static_cast<int>(blocks_per_sm(device, shape)),
                    toolkit_blocks_per_sm(device, kernel, threads, dynamic))
              << registers << " registers, " << threads << " threads, " << fixed << " + " << dynamic
              << " bytes of shared memory";
        }
      }
    }
  }
}

}  // namespace
}  // namespace cb::sim::client
