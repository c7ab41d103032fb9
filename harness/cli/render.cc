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

std::string advice_text(const Record& record) {
  if (!record.finding || record.verdict == Verdict::kPass) return "";
  return fmt::format("    `commbench explain {}{}` says what to do\n", to_string(record.verdict),
                     record.reason.empty() ? "" : " " + record.reason);
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
