#pragma once

#include <memory>

#include "simulator/decode/decode.h"
#include "simulator/decode/flow.h"
#include "simulator/decode/slots.h"

namespace cb::sim {

/// Turns a function whose registers have slots into operations: operands in their places, branch
/// targets, stall cycles, what waits for loads, and wait loops. `first_site` is the number of
/// access sites of the functions before it.
std::unique_ptr<FunctionCode> emit_code(const FunctionIr& ir, const FlowGraph& graph,
                                        const Liveness& live, const SlotMap& slots,
                                        const StallModel& stalls, uint32_t first_site);

}  // namespace cb::sim
