#pragma once

#include <string>
#include <string_view>
#include <tl/expected.hpp>

namespace cb::eval {

/// The candidate in a model's answer: the last complete fenced code block that defines cb_run, as
/// the prompt asks for. An answer without any fence is taken whole when it starts like a source
/// file. What a model thinks aloud before "</think>" is left out. The code is not changed.
struct NoCandidate {
  std::string reason;   ///< empty, no_code, truncated, no_cb_run
  std::string message;  ///< for the model
};
tl::expected<std::string, NoCandidate> extract_candidate(std::string_view reply);

}  // namespace cb::eval
