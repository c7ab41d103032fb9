#pragma once

#include <optional>

#include "harness/build/build.h"
#include "harness/evidence.h"

namespace cb::harness {

/// What a failed build speaks for, with the source line that its log or reason names.
std::optional<Evidence> evidence_of_build(const build::BuildResult& built);

}  // namespace cb::harness
