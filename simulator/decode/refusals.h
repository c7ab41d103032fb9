#pragma once

#include <optional>
#include <string>

#include "simulator/ptx/module.h"

namespace cb::sim {

/// Why an instruction will not be executed whatever else is added to the simulator: it needs other
/// hardware than sm_90, hardware of that generation no longer has it, or it is out of scope.
/// nullopt for all others.
std::optional<std::string> out_of_scope(const ptx::Instruction& instruction);

}  // namespace cb::sim
