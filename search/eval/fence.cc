#include "search/eval/fence.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"

namespace cb::eval {

std::string fenced(std::string_view text, std::string_view language, size_t max_bytes) {
  std::string content = printable(text, max_bytes);
  size_t longest = 0, run = 0;
  for (char c : content) {
    run = c == '`' ? run + 1 : 0;
    longest = std::max(longest, run);
  }
  std::string fence(std::max<size_t>(3, longest + 1), '`');
  if (content.empty() || content.back() != '\n') content += '\n';
  return fmt::format("{}{}\n{}{}\n", fence, language, content, fence);
}

}  // namespace cb::eval
