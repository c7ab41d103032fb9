#pragma once

#include "harness/cli/command.h"

namespace cb::cli {

/// `commbench sim trace`.
void add_sim_trace(CLI::App& sim, const Common& common, int& exit_code);

}  // namespace cb::cli
