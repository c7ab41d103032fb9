#pragma once

// A kernel that is being executed.

#include <memory>
#include <unordered_map>
#include <vector>

#include "simulator/exec/engine.h"
#include "simulator/exec/machine.h"

namespace cb::sim {

/// The presets of a function as a launch sees them: the slots that are the same for all warps, and
/// those that each warp, or each frame, computes for itself.
struct FrameTemplate {
  std::vector<Meta> meta;  ///< [num_slots]
  std::vector<const Preset*> of_warp;
  std::vector<const Preset*> of_frame;  ///< addresses in the frame's local memory
};

struct KernelCosts;

struct KernelRun {
  uint64_t id = 0;
  KernelLaunch launch;
  Engine::EndCallback on_end;
  Accessor accessor;
  uint64_t param_base = 0;  ///< generic address of the parameters
  uint64_t param_bytes = 0;
  uint64_t workspace = 0;  ///< of a cooperative launch, for grid barriers; 0: none
  std::vector<AccessSite> sites;
  std::unordered_map<const FunctionCode*, FrameTemplate> templates;

  uint32_t threads_per_block = 0;
  uint32_t warps_per_block = 0;
  uint64_t shared_bytes = 0;       ///< of a block, with what is reserved if the kernel asks for it
  uint64_t user_shared_bytes = 0;  ///< static, aligned, and dynamic
  uint64_t reserved_shared_offset = 0;  ///< of what belongs to libraries: after the user's
  uint64_t reserved_shared_bytes = 0;
  uint64_t dynamic_shared_offset = 0;
  uint64_t local_lane_bytes = 0;
  uint64_t num_blocks = 0;
  uint32_t cluster_blocks = 1;
  uint32_t blocks_per_sm = 0;        ///< on one that has nothing else
  uint64_t launched_dependents = 0;  ///< blocks that did, or ended
  uint64_t next_block = 0;
  std::vector<std::unique_ptr<Block>> blocks;  ///< resident
  std::vector<std::unique_ptr<Cluster>> clusters;
  Time end = 0;  ///< latest end of a block so far
  bool failed = false;
  KernelCosts* costs = nullptr;  ///< nullptr: nobody asked for them
};

}  // namespace cb::sim
