#pragma once

#include <string>
#include <string_view>

namespace cb::eval {

/// `text` as a fenced code block that nothing in it can end: the fence is longer than any run of
/// backticks in it. Control characters are escaped. At most `max_bytes` of the text are kept, and
/// what was cut is said.
std::string fenced(std::string_view text, std::string_view language, size_t max_bytes);

}  // namespace cb::eval
