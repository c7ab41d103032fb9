#include "harness/build_verdict.h"

#include <fmt/format.h>

#include <regex>

#include "base/text.h"

namespace cb::harness {
namespace {

using build::BuildOutcome;
using results::Verdict;

constexpr size_t kMaxLineBytes = 300;

struct Place {
  std::string file;
  int line = 0;
  std::string message;
};

// nvcc says `file(12): error: text`, g++ and ld say `file:12:3: error: text`.
std::optional<Place> first_error(const std::string& log) {
  static const std::regex kError(
      R"(^([^\s:(]+)(?:\((\d+)\)|:(\d+)(?::\d+)?): (?:fatal )?error:?\s*(.*)$)");
  for (const std::string& line : split(log, '\n')) {
    std::smatch match;
    if (line.size() > kMaxLineBytes || !std::regex_match(line, match, kError)) continue;
    std::string number = match[2].matched ? match[2] : match[3];
    if (number.size() > 8) continue;
    return Place{match[1], std::stoi(number), match[4]};
  }
  return std::nullopt;
}

// Reasons of the source checks start with `file:12: `.
std::optional<Place> place_of(const std::string& reason) {
  static const std::regex kPlace(R"(^([^\s:]+):(\d{1,8}): (.*)$)");
  std::smatch match;
  if (reason.size() > 4 * kMaxLineBytes || !std::regex_match(reason, match, kPlace)) {
    return std::nullopt;
  }
  return Place{match[1], std::stoi(match[2]), match[3]};
}

std::string forbidden_reason(const std::string& text) {
  auto has = [&](const char* word) { return text.find(word) != std::string::npos; };
  if (has("include")) return "include";
  if (has("made to call")) return "syscall";
  if (has("the library uses")) return "symbol";
  if (has("device") || has("dynamic parallelism") || has("binary kernel")) return "device_code";
  return "source";
}

}  // namespace

std::optional<Evidence> evidence_of_build(const build::BuildResult& built) {
  if (built.outcome == BuildOutcome::kOk) return std::nullopt;
  Evidence evidence;
  results::Finding& finding = evidence.finding;
  finding.message = printable(built.reason, kMaxLineBytes);
  std::optional<Place> place = place_of(built.reason);
  switch (built.outcome) {
    case BuildOutcome::kForbidden:
      evidence.verdict = Verdict::kForbidden;
      evidence.reason = forbidden_reason(built.reason);
      break;
    case BuildOutcome::kLimit:
      evidence.verdict = Verdict::kCompileError;
      evidence.reason = fmt::format("limit_{}", to_string(built.limit));
      break;
    case BuildOutcome::kTimeout:
      evidence.verdict = Verdict::kCompileError;
      evidence.reason = "timeout";
      break;
    default:
      evidence.verdict = Verdict::kCompileError;
      if (!place) place = first_error(built.log);
      if (place && !place->message.empty()) finding.message = printable(place->message, 300);
  }
  if (place) {
    finding.file = place->file;
    finding.line = place->line;
  }
  return evidence;
}

}  // namespace cb::harness
