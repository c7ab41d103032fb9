#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "harness/cli/command.h"
#include "harness/cli/explain.h"

namespace cb::cli {
namespace {

// Text as wide as a terminal likes it.
std::string wrapped(std::string_view text) {
  constexpr size_t kWidth = 96;
  std::string result;
  size_t column = 0;
  for (const std::string& word : split(text, ' ')) {
    if (column > 0 && column + 1 + word.size() > kWidth) {
      result += "\n  ";
      column = 0;
    } else {
      result += column > 0 ? " " : "  ";
    }
    result += word;
    column += word.size() + 1;
  }
  return result + "\n";
}

const Explanation& find(const std::string& word) {
  if (const Explanation* found = find_explanation(word)) return *found;
  std::vector<std::string> known;
  for (const Explanation& one : explanations()) known.emplace_back(one.word);
  std::optional<std::string> close = closest(word, known);
  throw Error(ErrorCode::kUsage,
              fmt::format("\"{}\" is no verdict and no reason{}", word,
                          close ? fmt::format("; did you mean {}?", *close)
                                : fmt::format(" (known: {})", fmt::join(known, ", "))));
}

int explain(const Common& common, const std::vector<std::string>& words) {
  Json json = Json::array();
  for (const std::string& word : words) {
    // "memory_error: out_of_bounds" may be pasted as it is.
    std::string plain(trim(word));
    if (plain.ends_with(':')) plain.pop_back();
    const Explanation& one = find(plain);
    json.push_back({{"word", one.word},
                    {"reason_of", one.of},
                    {"meaning", one.meaning},
                    {"advice", one.advice}});
    if (common.json) continue;
    print(one.of.empty() ? fmt::format("{}\n", one.word)
                         : fmt::format("{} (a reason of {})\n", one.word, one.of));
    print(wrapped(one.meaning) + wrapped(one.advice));
  }
  if (common.json) print_json(json);
  return kDone;
}

}  // namespace

void add_explain(CLI::App& app, const Common& common, int& exit_code) {
  auto words = std::make_shared<std::vector<std::string>>();
  CLI::App* command =
      app.add_subcommand("explain", "what a verdict or a reason means and what to do");
  command->add_option("VERDICT", *words, "verdicts or reasons, as in memory_error misaligned")
      ->required();
  command->callback([&common, &exit_code, words] { exit_code = explain(common, *words); });
}

}  // namespace cb::cli
