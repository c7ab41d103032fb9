#pragma once

#include <string>

#include "base/json.h"

namespace cb::cli {

/// The lines of a profile (harness/observe.h) on which most time is spent, as a table; a sentence
/// where there are none.
std::string profile_text(const Json& profile, bool color);

}  // namespace cb::cli
