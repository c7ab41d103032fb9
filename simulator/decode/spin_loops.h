#pragma once

#include "simulator/decode/flow.h"
#include "simulator/decode/slots.h"

namespace cb::sim {

/// Marks the back edges of loops that may do nothing but wait: something in them says so (a strong
/// load, an atomic, a look at a clock) and nothing in them stores.
void find_spin_loops(const FunctionIr& ir, const FlowGraph& graph, const Liveness& live,
                     const SlotMap& slots, FunctionCode& code);

}  // namespace cb::sim
