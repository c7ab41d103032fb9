#include "harness/cli/render.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/tty.h"

namespace cb::cli {
namespace {

using results::CaseResult;
using results::Record;
using results::Verdict;

constexpr size_t kMaxWaiters = 6;

Color color_of(Verdict verdict) {
  switch (verdict) {
    case Verdict::kPass:
      return Color::kGreen;
    case Verdict::kSkipped:
      return Color::kDim;
    case Verdict::kInfraError:
      return Color::kYellow;
    default:
      return Color::kRed;
  }
}

std::string speedup_text(const std::optional<double>& speedup) {
  return speedup ? fmt::format("{:.2f}", *speedup) : "-";
}

// nccl-tests prints microseconds.
std::string time_us(uint64_t time_ps) {
  return time_ps == 0 ? "-" : fmt::format("{:.2f}", static_cast<double>(time_ps) / 1e6);
}

std::string gbps(double value) { return value == 0 ? "-" : fmt::format("{:.2f}", value); }

std::string or_dash(const std::string& text) { return text.empty() ? "-" : text; }

std::vector<Table::Cell> traffic_cells(const CaseResult& result) {
  return {{fmt::format("{}", result.bytes)},
          {fmt::format("{}", result.count)},
          {or_dash(result.type)},
          {or_dash(result.redop)},
          {time_us(result.time_ps)},
          {gbps(result.algbw_gbps())},
          {gbps(result.busbw_gbps())},
          {time_us(result.reference_ps)}};
}

void add_traffic_columns(std::vector<Table::Column>& columns) {
  using Align = Table::Align;
  for (const char* title : {"size(B)", "count"}) columns.push_back({title, Align::kRight});
  for (const char* title : {"type", "redop"}) columns.push_back({title, Align::kLeft});
  for (const char* title : {"time(us)", "algbw(GB/s)", "busbw(GB/s)", "reference(us)", "speedup"}) {
    columns.push_back({title, Align::kRight});
  }
}

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

std::string score_table(const std::vector<Record>& records, bool color) {
  std::vector<Table::Column> columns = {
      {"candidate"}, {"task"}, {"cases", Table::Align::kRight}, {"verdict"}};
  add_traffic_columns(columns);
  Table table(columns);
  for (const Record& record : records) {
    std::vector<Table::Cell> cells = {
        {printable(record.candidate, 100)},
        {record.task},
        {fmt::format("{}/{}", record.cases_passed(), record.cases.size())},
        {results::outcome_text(record.verdict, record.reason), color_of(record.verdict)}};
    const CaseResult* headline = record.verdict == Verdict::kPass ? record.headline() : nullptr;
    std::vector<Table::Cell> traffic(8, {"-"});
    if (headline != nullptr) traffic = traffic_cells(*headline);
    cells.insert(cells.end(), traffic.begin(), traffic.end());
    cells.push_back({speedup_text(record.speedup())});
    table.add_row(std::move(cells));
  }
  return table.render(color);
}

std::string case_table(const Record& record, bool color) {
  std::vector<Table::Column> columns = {{"case"}, {"ranks", Table::Align::kRight}, {"verdict"}};
  add_traffic_columns(columns);
  Table table(columns);
  for (const CaseResult& result : record.cases) {
    std::vector<Table::Cell> cells = {
        {result.id},
        {fmt::format("{}", result.world_size)},
        {results::outcome_text(result.verdict, result.reason), color_of(result.verdict)}};
    std::vector<Table::Cell> traffic = traffic_cells(result);
    cells.insert(cells.end(), traffic.begin(), traffic.end());
    cells.push_back({speedup_text(result.speedup())});
    table.add_row(std::move(cells));
  }
  return table.render(color);
}

std::string score_lines(const metrics::Scores& scores) {
  return fmt::format(
      "Pass rate   {:.1f} % ({} of {})\n"
      "PASS+Good   {:.1f} % ({}; at most {:.0f} % slower than the reference)\n"
      "GM-speedup  {} (over {} that passed and were measured)\n"
      "Pass×GM     {}\n",
      scores.pass_rate * 100, scores.passed, scores.attempts, scores.good_rate * 100, scores.good,
      metrics::kGoodTolerance * 100, speedup_text(scores.geomean_speedup), scores.measured,
      speedup_text(scores.pass_times_geomean));
}

std::string finding_text(const Record& record) {
  if (!record.finding || record.verdict == Verdict::kPass) return "";
  const results::Finding& finding = *record.finding;
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
  std::string advice =
      fmt::format("    `commbench explain {}{}` says what to do\n", to_string(record.verdict),
                  record.reason.empty() ? "" : " " + record.reason);
  return text + advice;
}

std::string verdict_text(const Record& record, bool color) {
  return colored(results::outcome_text(record.verdict, record.reason), color_of(record.verdict),
                 color);
}

std::string wall_text(const Record& record) {
  double named =
      record.wall_build_ms + record.wall_launch_ms + record.wall_simulate_ms + record.wall_grade_ms;
  return fmt::format(
      "wall time {:.2f} s: build {:.2f}{}, launch {:.2f}, simulate {:.2f}, grade {:.2f}, "
      "other {:.2f}\n",
      record.wall_total_ms / 1e3, record.wall_build_ms / 1e3,
      record.wall_build_cached ? " (cached)" : "", record.wall_launch_ms / 1e3,
      record.wall_simulate_ms / 1e3, record.wall_grade_ms / 1e3,
      std::max(0.0, record.wall_total_ms - named) / 1e3);
}

}  // namespace cb::cli
