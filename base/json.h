#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "base/error.h"

namespace cb {

/// Keeps the order in which keys were set, so that records read the same every time.
using Json = nlohmann::ordered_json;

/// Parses one document. `where` (a file name, "line 3 of x") starts the error message.
Result<Json> parse_json(std::string_view text, const std::string& where);

/// One line, UTF-8; bytes that are not UTF-8 become U+FFFD instead of an exception.
std::string dump_json(const Json& value);
/// The same, indented by two blanks, with a final newline.
std::string dump_json_pretty(const Json& value);

}  // namespace cb
