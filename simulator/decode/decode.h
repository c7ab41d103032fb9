#pragma once

// From PTX to operations: control flow, liveness, scheduling of loads, slots, presets.

#include <memory>
#include <string>

#include "base/error.h"
#include "simulator/exec/code.h"
#include "simulator/timing/profile.h"

namespace cb::sim {

/// Passes that tests switch off to see that results do not depend on them.
struct DecodeOptions {
  bool schedule_loads = true;  ///< move loads up, as ptxas does
  bool share_slots = true;     ///< registers that do not live at the same time share a slot
};

/// Latencies that static stall cycles are computed from.
struct StallModel {
  uint32_t alu = 4, multiply = 4, half_rate = 6, doubled = 8, special = 18, convert = 6, branch = 8;
  static StallModel of(const Profile& profile);
};

/// Decodes the kernel `name` and all functions it can reach. Error(kConfig) names the instruction
/// or the function that is not supported, with its place: "ptx:123: wgmma.mma_async...: not
/// supported". Safe on any module that ptx::parse returned; time and memory are bounded by a small
/// multiple of the module's size.
Result<std::shared_ptr<const Program>> decode(std::shared_ptr<const ptx::Module> module,
                                              const std::string& name, const StallModel& stalls,
                                              const DecodeOptions& options = {});

/// Human-readable form of decoded code, for tests and for people.
std::string disassemble(const Program& program);

}  // namespace cb::sim
