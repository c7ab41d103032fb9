#pragma once

#include <string>

#include "base/json.h"

namespace cb::cli {

/// The last step of a timeline (sim::Timeline::to_json) as a picture, ranks from top to bottom and
/// time from left to right: phases, kernels and copies, and up to three rows each of blocks and
/// waits. For light and dark pages; names come as titles. An empty picture with a sentence where no
/// step was run.
std::string timeline_svg(const Json& trace, const std::string& title);

}  // namespace cb::cli
