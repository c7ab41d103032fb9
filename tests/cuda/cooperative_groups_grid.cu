// Cooperative groups beyond a warp: the block, and the whole grid of a cooperative launch.

#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>

#include "check.h"

namespace cg = cooperative_groups;

/// Each round every block reads what all blocks wrote in the round before.
__global__ void rounds(unsigned long long* slots, unsigned long long* total, int num_rounds) {
  cg::grid_group grid = cg::this_grid();
  cg::thread_block block = cg::this_thread_block();
  unsigned num_blocks = gridDim.x;
  if (!grid.is_valid()) return;
  for (int round = 0; round < num_rounds; ++round) {
    unsigned long long sum = 0;
    if (block.thread_rank() == 0) {
      for (unsigned other = 0; other < num_blocks; ++other) sum += slots[other];
    }
    grid.sync();
    if (block.thread_rank() == 0) slots[blockIdx.x] = sum + blockIdx.x + 1;
    grid.sync();
  }
  auto warp = cg::tiled_partition<32>(block);
  unsigned long long ones = cg::reduce(warp, 1ULL, cg::plus<unsigned long long>());
  if (warp.thread_rank() == 0) atomicAdd(total, ones);
  grid.sync();
  if (grid.thread_rank() == 0) *total += 1000000 * grid.size();
}

int main() {
  constexpr int kThreads = 64, kRounds = 3;
  int resident = 0, cooperative = 0;
  cudaDeviceProp device;
  REQUIRE_OK(cudaGetDeviceProperties(&device, 0));
  REQUIRE_OK(cudaDeviceGetAttribute(&cooperative, cudaDevAttrCooperativeLaunch, 0));
  if (cooperative == 0) return 77;
  REQUIRE_OK(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&resident, rounds, kThreads, 0));
  EXPECT(resident > 0);
  unsigned num_blocks = 12;
  unsigned long long* memory = nullptr;
  REQUIRE_OK(cudaMalloc(&memory, (num_blocks + 1) * sizeof *memory));
  REQUIRE_OK(cudaMemset(memory, 0, (num_blocks + 1) * sizeof *memory));
  unsigned long long* total = memory + num_blocks;
  int num_rounds = kRounds;
  void* args[] = {&memory, &total, &num_rounds};
  EXPECT_OK(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(rounds), num_blocks, kThreads, args,
                                        0, nullptr));
  unsigned long long result[13];
  EXPECT_OK(cudaMemcpy(result, memory, sizeof result, cudaMemcpyDeviceToHost));
  unsigned long long expected[12] = {};
  for (int round = 0; round < kRounds; ++round) {
    unsigned long long sum = 0;
    for (unsigned long long slot : expected) sum += slot;
    for (unsigned at = 0; at < num_blocks; ++at) expected[at] = sum + at + 1;
  }
  for (unsigned at = 0; at < num_blocks; ++at) EXPECT_EQUAL(result[at], expected[at]);
  EXPECT_EQUAL(result[12], num_blocks * kThreads * 1000001ULL);

  unsigned too_many = static_cast<unsigned>(resident * device.multiProcessorCount + 1);
  EXPECT_ERROR(cudaLaunchCooperativeKernel(reinterpret_cast<void*>(rounds), too_many, kThreads,
                                           args, 0, nullptr),
               cudaErrorCooperativeLaunchTooLarge);
  return failures();
}
