#pragma once

#include <string>

namespace cb {

/// Prints `file:line: message` and aborts. Called by CB_CHECK only.
[[noreturn]] void check_failed(const char* file, int line, const char* condition,
                               const std::string& message);

}  // namespace cb

/// States an invariant of our own code, also in release builds. Never use it on anything that user
/// input or a candidate can influence: that is an `Error` or a verdict.
#define CB_CHECK(condition, message)                                 \
  do {                                                               \
    if (!(condition)) [[unlikely]] {                                 \
      ::cb::check_failed(__FILE__, __LINE__, #condition, (message)); \
    }                                                                \
  } while (false)
