#include "results/finding_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"

namespace cb::results {
namespace {

constexpr size_t kMaxWaiters = 6;

// What the lines above the details say, or what only a program wants to know.
constexpr std::string_view kSaidAlready[] = {"message", "rank",   "time_ps", "kind",     "file",
                                             "line",    "detail", "address", "ptx_line", "device"};

std::string text_at(const Json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? printable(found->get<std::string>(), 300) : "";
}

// Any value on one line, as far as a person wants to read it.
std::string short_value(const Json& value) {
  return printable(value.is_string() ? value.get<std::string>() : dump_json(value), 300);
}

void add_values(const Json& first, std::string& text) {
  for (const Json& one : first) {
    std::string note = text_at(one, "note");
    text += fmt::format("    element {}: expected {}, actual {}{}\n", dump_json(one.at("element")),
                        text_at(one, "expected"), text_at(one, "actual"),
                        note.empty() ? "" : " (" + note + ")");
  }
}

std::string numbers_at(const Json& json, const char* key) {
  auto found = json.find(key);
  if (found == json.end() || !found->is_array()) return "?";
  std::string text;
  for (const Json& one : *found) text += (text.empty() ? "" : ",") + dump_json(one);
  return "(" + text + ")";
}

// Without namespaces and parameters: what a person calls the kernel.
std::string kernel_name(const std::string& demangled) {
  std::string name = demangled.substr(demangled.starts_with('(') ? demangled.find(')') + 1 : 0);
  name = name.substr(0, name.find_first_of("(<"));
  size_t scope = name.rfind("::");
  return scope == std::string::npos ? name : name.substr(scope + 2);
}

std::string waiter_line(const Json& waiter) {
  int64_t threads = waiter.value("num_threads", int64_t{1});
  std::string others = threads > 1 ? fmt::format(" and {} more", threads - 1) : "";
  return fmt::format("    rank {}, block {}, thread {}{}: {}, line {}: waits for {}\n",
                     waiter.value("rank", -1), numbers_at(waiter, "block"),
                     numbers_at(waiter, "thread"), others, kernel_name(text_at(waiter, "kernel")),
                     waiter.value("line", 0), text_at(waiter, "waits_for"));
}

void add_waiters(const Json& waiters, std::string& text) {
  for (size_t i = 0; i < std::min(waiters.size(), kMaxWaiters); ++i) {
    text += waiter_line(waiters[i]);
  }
  if (waiters.size() > kMaxWaiters) {
    text += fmt::format("    ... and {} more in verdict.json\n", waiters.size() - kMaxWaiters);
  }
}

void add_details(const Json& details, std::string& text) {
  for (const auto& [key, value] : details.items()) {
    if (key == "first") {
      add_values(value, text);
    } else if (key == "waiters") {
      add_waiters(value, text);
    } else if (key == "hosts" && details.contains("waiters")) {
      continue;
    } else if (key == "output" && value.is_string() && value.get<std::string>().empty()) {
      continue;
    } else if (!std::count(std::begin(kSaidAlready), std::end(kSaidAlready), key)) {
      text += fmt::format("    {}: {}\n", key, short_value(value));
    }
  }
}

}  // namespace

std::string finding_text(const Record& record) {
  if (!record.finding || record.verdict == Verdict::kPass) return "";
  const Finding& finding = *record.finding;
  std::string text = fmt::format("  {}\n", printable(finding.message, 2000));
  if (!finding.file.empty() || finding.line > 0) {
    text += fmt::format("    at {}:{}\n", printable(finding.file, 200), finding.line);
  }
  std::string where;
  if (!finding.case_id.empty()) where += fmt::format("case {}, ", finding.case_id);
  if (finding.step >= 0) where += fmt::format("step {}, ", finding.step);
  if (finding.rank >= 0) where += fmt::format("rank {}, ", finding.rank);
  if (finding.time_ps > 0 && finding.time_ps != UINT64_MAX) {
    where += fmt::format("after {} of simulated time, ", format_time_ps(finding.time_ps));
  }
  if (!where.empty()) text += fmt::format("    {}\n", where.substr(0, where.size() - 2));
  add_details(finding.details, text);
  return text;
}

}  // namespace cb::results
