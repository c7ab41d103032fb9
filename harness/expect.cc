#include "harness/expect.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "base/yaml.h"

namespace cb::harness {
namespace {

using results::Verdict;

Verdict parse_verdict(const Yaml& node) {
  std::vector<std::string> names;
  for (Verdict verdict : results::all_verdicts()) names.emplace_back(to_string(verdict));
  return results::all_verdicts()[node.one_of(names)];
}

Expectation parse(const Yaml& node) {
  Expectation expected;
  expected.file = node.at("file").text();
  expected.about = node.at("about").text();
  expected.verdicts.push_back(parse_verdict(node.at("verdict")));
  if (auto also = node.find("also")) expected.verdicts.push_back(parse_verdict(*also));
  // What only another checker finds passes for what it looks like without it.
  if (auto needs = node.find("needs")) {
    needs->one_of({"race-detector"});
    expected.verdicts.push_back(parse_verdict(node.at("without")));
  }
  if (auto reason = node.find("reason")) expected.reason = reason->text();
  if (auto rank = node.find("rank")) expected.rank = static_cast<int>(rank->integer(0, 1023));
  if (auto lines = node.find("lines")) {
    for (int64_t line : lines->integers(1, 1 << 20)) {
      expected.lines.push_back(static_cast<int>(line));
    }
  }
  return expected;
}

}  // namespace

Result<std::vector<Expectation>> load_expectations(const std::string& path) {
  try {
    Yaml file = Yaml::load_file(path);
    std::vector<Expectation> all;
    for (const Yaml& node : file.at("candidates").items()) all.push_back(parse(node));
    file.finish();
    return all;
  } catch (const Error& error) {
    return tl::unexpected<Error>(error);
  }
}

std::string mismatch(const Expectation& expected, const results::Record& record) {
  std::string is = results::outcome_text(record.verdict, record.reason);
  auto found = std::find(expected.verdicts.begin(), expected.verdicts.end(), record.verdict);
  std::string should = results::outcome_text(expected.verdicts.front(), expected.reason);
  if (found == expected.verdicts.end()) return fmt::format("is {}, should be {}", is, should);
  if (found != expected.verdicts.begin()) return "";
  if (!expected.reason.empty() && expected.reason != record.reason) {
    return fmt::format("is {}, should be {}", is, should);
  }
  if (record.verdict == Verdict::kPass) return "";
  const results::Finding finding = record.finding.value_or(results::Finding{});
  if (expected.rank >= 0 && finding.rank != expected.rank) {
    return fmt::format("{} of rank {}, should be of rank {}", is, finding.rank, expected.rank);
  }
  if (!expected.lines.empty() && std::find(expected.lines.begin(), expected.lines.end(),
                                           finding.line) == expected.lines.end()) {
    return fmt::format("{} at line {}, should be at {}", is, finding.line,
                       fmt::join(expected.lines, " or "));
  }
  return "";
}

std::vector<std::string> mismatches(const std::vector<Expectation>& expected,
                                    const std::vector<results::Record>& records) {
  std::map<std::string, const results::Record*> by_name;
  for (const results::Record& record : records) by_name[record.candidate] = &record;
  std::vector<std::string> lines;
  for (const Expectation& one : expected) {
    auto found = by_name.find(one.file);
    if (found == by_name.end()) {
      lines.push_back(one.file + ": was not scored");
      continue;
    }
    std::string why = mismatch(one, *found->second);
    if (!why.empty()) lines.push_back(fmt::format("{}: {} ({})", one.file, why, one.about));
    by_name.erase(found);
  }
  for (const auto& [name, record] : by_name) {
    lines.push_back(fmt::format("{}: nothing is expected of it; it is {}", name,
                                results::outcome_text(record->verdict, record->reason)));
  }
  return lines;
}

}  // namespace cb::harness
