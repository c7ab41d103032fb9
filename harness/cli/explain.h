#pragma once

#include <span>
#include <string_view>

namespace cb::cli {

/// What a verdict, or a reason of one, means and what to do about it.
struct Explanation {
  std::string_view word;  ///< "memory_error", "out_of_bounds"
  std::string_view of;    ///< the verdicts that have this reason; empty for verdicts
  std::string_view meaning;
  std::string_view advice;
};

std::span<const Explanation> explanations();
/// nullptr for a word that is neither verdict nor reason.
const Explanation* find_explanation(std::string_view word);

}  // namespace cb::cli
