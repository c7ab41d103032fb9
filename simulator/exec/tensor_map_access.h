#pragma once

// Tensor maps that instructions name, in memory of any kind.

#include <optional>

#include "simulator/exec/async_address.h"
#include "simulator/protocol/tensor_map.h"

namespace cb::sim {

/// Maps are whole cache lines in hardware; half of one is what the toolkit aligns them to.
inline constexpr uint32_t kTensorMapAlignment = 64;

/// The map at a generic address: of the launch's parameters, or of global or constant memory.
/// nullopt after a fault; whatever it holds is well-formed.
std::optional<TensorMap> read_tensor_map(Context& c, const MicroOp* op, int lane, uint64_t address);

}  // namespace cb::sim
