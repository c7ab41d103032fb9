#pragma once

#include "simulator/decode/flow.h"

namespace cb::sim {

/// Moves loads, and what computes their addresses, up within each block, as ptxas does so that many
/// are under way at once. Weak loads pass neither stores nor anything that orders memory; loads of
/// memory that nothing writes pass everything.
void schedule_loads(FunctionIr& ir, const FlowGraph& graph);

}  // namespace cb::sim
