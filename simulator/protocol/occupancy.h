#pragma once

// How many blocks an SM holds. Both the shims (occupancy queries, launch checks) and the daemon
// (residency) use this one function.

#include <cstdint>

#include "simulator/protocol/protocol.h"

namespace cb::sim {

/// Allocation granularity of compute capability 8.0 to 9.0: CUDA Occupancy Calculator tables, and
/// cuda_occupancy.h of the toolkit.
inline constexpr uint32_t kWarpSize = 32;
inline constexpr uint32_t kRegisterUnit = 256;  ///< registers, per warp
inline constexpr uint32_t kSharedUnitBytes = 128;
inline constexpr uint32_t kSchedulersPerSm = 4;

struct BlockShape {
  uint32_t threads = 0;
  uint32_t registers_per_thread = 0;
  uint64_t shared_bytes = 0;  ///< static + dynamic
};

/// Resident blocks of one kernel per SM; 0 when a block does not fit at all.
constexpr uint32_t blocks_per_sm(const DeviceInfo& device, const BlockShape& block) {
  if (block.threads == 0) return 0;
  uint64_t warps = (block.threads + kWarpSize - 1) / kWarpSize;
  uint64_t limit = device.max_blocks_per_sm;
  auto lower = [&limit](uint64_t bound) { limit = bound < limit ? bound : limit; };
  lower(device.max_threads_per_sm / kWarpSize / warps);
  if (block.registers_per_thread > 0) {
    uint64_t per_warp = (uint64_t{block.registers_per_thread} * kWarpSize + kRegisterUnit - 1) /
                        kRegisterUnit * kRegisterUnit;
    // Registers are split among the schedulers, and a warp's must come from one of them.
    uint64_t per_scheduler = device.registers_per_sm / kSchedulersPerSm / per_warp;
    lower(per_scheduler * kSchedulersPerSm / warps);
  }
  uint64_t shared = block.shared_bytes + device.reserved_shared_per_block_bytes;
  shared = (shared + kSharedUnitBytes - 1) / kSharedUnitBytes * kSharedUnitBytes;
  if (shared > 0) lower(device.shared_per_sm_bytes / shared);
  return static_cast<uint32_t>(limit);
}

/// CUDA C++ Programming Guide, "Thread Block Clusters": 8 is portable, 16 needs an opt-in.
inline constexpr uint32_t kPortableClusterBlocks = 8;
inline constexpr uint32_t kLargestClusterBlocks = 16;

/// Clusters that are resident at once on an idle device, each within a GPC.
constexpr uint32_t clusters_per_device(const DeviceInfo& device, const BlockShape& block,
                                       uint32_t cluster_blocks) {
  uint32_t clusters = 0;
  for (uint32_t gpc = 0; gpc < device.num_gpcs; ++gpc) {
    clusters += device.gpc_sms[gpc] * blocks_per_sm(device, block) / cluster_blocks;
  }
  return clusters;
}

}  // namespace cb::sim
