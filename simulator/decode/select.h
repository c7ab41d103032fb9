#pragma once

#include <set>

#include "simulator/decode/ir.h"
#include "simulator/decode/memory_layout.h"

namespace cb::sim {

/// Chooses the handler of every instruction of a function and says what its operands are.
/// `reached` gets the functions (indices into Module::functions) that it calls or takes the address
/// of; `calls_unknown` becomes true for calls through registers.
Result<FunctionIr> select_operations(const ptx::Module& module, const ptx::Function& function,
                                     SharedLayout& shared, std::set<uint32_t>& reached,
                                     bool& calls_unknown);

}  // namespace cb::sim
