#pragma once

#include <optional>
#include <string_view>

#include "simulator/exec/code.h"

namespace cb::sim {

/// The preset of a special register that never changes while a warp runs; nullopt for others.
std::optional<Preset> special_preset(std::string_view name);

}  // namespace cb::sim
