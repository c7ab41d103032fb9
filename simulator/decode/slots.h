#pragma once

#include "simulator/decode/flow.h"

namespace cb::sim {

/// Where the registers and presets of a function live in its frames.
struct SlotMap {
  std::vector<Slot> registers;  ///< predicates: only `index`, into Context::predicates
  std::vector<Slot> presets;
  uint32_t num_slots = 0;
  uint32_t vector_lines = 0;
  uint32_t num_predicates = 0;
};

/// With `share`, registers of one width that do not live at the same time get the same slot.
/// Error(kConfig) for functions with more registers than slots can be numbered.
Result<SlotMap> assign_slots(const FunctionIr& ir, const FlowGraph& graph, const Liveness& live,
                             bool share);

}  // namespace cb::sim
