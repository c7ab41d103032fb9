#pragma once

#include <string>
#include <vector>

#include "harness/cli/command.h"

namespace cb::cli {

struct CheckOptions {
  std::vector<std::string> tasks;
  std::string platform = "sim:h100x8";
  std::string run_key;
  bool cost = false;
};

/// The reference passes; the starter does not; the family's deliberately wrong candidate passes in
/// its mode "correct" and fails in every other, on every case that lists the mode.
int check_tasks(const Common& common, const CheckOptions& options);

}  // namespace cb::cli
