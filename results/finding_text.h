#pragma once

#include <string>

#include "results/record.h"

namespace cb::results {

/// The finding of a record that did not pass, so that its reader knows what to change: what, where,
/// and at most 8 elements. Control characters are escaped. Empty for a pass.
std::string finding_text(const Record& record);

}  // namespace cb::results
