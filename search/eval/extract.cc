#include "search/eval/extract.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/text.h"

namespace cb::eval {
namespace {

struct Block {
  std::string content;
  bool is_complete = false;
};

/// How many of `mark` a line starts with, after up to three blanks (CommonMark, fenced code
/// blocks).
size_t fence_length(std::string_view line, char mark) {
  size_t at = 0;
  while (at < line.size() && at < 3 && line[at] == ' ') ++at;
  size_t from = at;
  while (at < line.size() && line[at] == mark) ++at;
  return at - from;
}

std::vector<Block> fenced_blocks(std::string_view text) {
  std::vector<Block> blocks;
  std::optional<Block> open;
  char mark = 0;
  size_t length = 0;
  for (const std::string& line : split(text, '\n')) {
    if (!open) {
      for (char candidate : {'`', '~'}) {
        size_t found = fence_length(line, candidate);
        if (found < 3) continue;
        // A line such as ```` ```x``` ```` is text.
        if (candidate == '`' && line.find('`', line.find('`') + found) != std::string::npos)
          continue;
        open.emplace();
        mark = candidate;
        length = found;
        break;
      }
      continue;
    }
    size_t found = fence_length(line, mark);
    bool closes = found >= length && trim(line).find_first_not_of(mark) == std::string_view::npos;
    if (closes) {
      open->is_complete = true;
      blocks.push_back(std::move(*open));
      open.reset();
    } else {
      open->content += line + "\n";
    }
  }
  if (open) blocks.push_back(std::move(*open));
  return blocks;
}

bool defines_run(std::string_view code) { return code.find("cb_run") != std::string_view::npos; }

tl::unexpected<NoCandidate> none(const char* reason, const char* message) {
  return tl::unexpected(NoCandidate{reason, message});
}

}  // namespace

tl::expected<std::string, NoCandidate> extract_candidate(std::string_view reply) {
  constexpr std::string_view kEndOfThought = "</think>";
  if (size_t at = reply.rfind(kEndOfThought); at != std::string_view::npos) {
    reply.remove_prefix(at + kEndOfThought.size());
  }
  if (trim(reply).empty()) return none("empty", "The answer was empty.");
  std::vector<Block> blocks = fenced_blocks(reply);
  for (size_t i = blocks.size(); i-- > 0;) {
    if (!defines_run(blocks[i].content)) continue;
    if (blocks[i].is_complete) return std::move(blocks[i].content);
    // A last block that was cut off would be newer than any complete one before it.
    return none("truncated",
                "The answer ended inside its code block: write a shorter file, or explain less.");
  }
  if (blocks.empty()) {
    std::string_view text = trim(reply);
    bool is_source = text.starts_with('#') || text.starts_with("//") || text.starts_with("/*");
    if (is_source && text.find("#include") != std::string_view::npos && defines_run(text)) {
      return std::string(text) + "\n";
    }
    return none("no_code", "The answer had no code block.");
  }
  return none("no_cb_run", "No code block of the answer defines cb_run.");
}

}  // namespace cb::eval
