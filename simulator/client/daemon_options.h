#pragma once

// DaemonOptions as the text that commbench-simd takes as --options.

#include <string>
#include <string_view>

#include "base/error.h"
#include "simulator/client/rank_client.h"

namespace cb::sim {

std::string to_text(const DaemonOptions& options);
/// Error(kConfig) for unknown keys and for values of the wrong type.
Result<DaemonOptions> daemon_options_from_text(std::string_view text);

}  // namespace cb::sim
