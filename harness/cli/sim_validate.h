#pragma once

#include <string>

#include "harness/cli/command.h"

namespace cb::cli {

struct ValidateOptions {
  std::string filter;  ///< only programs whose name contains it
  bool functional = false;
};

/// Runs the self-checking programs of tests/cuda on the simulator and, where this machine has GPUs,
/// on them, and prints where the two differ. kDidNotPass when a program fails or differs.
int validate_simulator(const Common& common, const ValidateOptions& options);

}  // namespace cb::cli
