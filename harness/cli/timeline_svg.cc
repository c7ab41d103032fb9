#include "harness/cli/timeline_svg.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <vector>

namespace cb::cli {
namespace {

constexpr double kWidth = 960, kLeft = 70, kRight = 20, kTop = 50, kRow = 14, kGap = 10;
constexpr size_t kRowsOfKind = 3;
/// Spans beyond that many are left out, with a note.
constexpr size_t kMaxShapes = 4000;

struct Window {
  double start = 0;
  double end = 0;
};

std::string escaped(const std::string& text) {
  std::string result;
  for (char c : text) {
    switch (c) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      default:
        result += c;
    }
  }
  return result;
}

/// From the first start to the last end of the ranks' last steps.
Window last_step(const Json& trace) {
  std::map<int, Window> last;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X" || event.at("cat") != "phase" || event.at("name") != "step") continue;
    auto start = event.at("ts").get<double>();
    Window& window = last[event.at("pid").get<int>()];
    if (start >= window.start) window = {start, start + event.at("dur").get<double>()};
  }
  Window all;
  for (const auto& [rank, window] : last) {
    bool is_first = all.end == 0;
    all.start = is_first ? window.start : std::min(all.start, window.start);
    all.end = std::max(all.end, window.end);
  }
  return all;
}

const char* class_of(const std::string& kind) {
  if (kind == "phase") return "phase";
  if (kind == "stream") return "work";
  if (kind == "blocks") return "block";
  return kind == "waits" ? "wait" : "";
}

/// Events of the window by rank and row of the trace, with at most kRowsOfKind rows of a kind.
using Rows = std::map<int, std::map<int64_t, std::vector<const Json*>>>;
Rows rows_of(const Json& trace, const Window& window) {
  Rows rows;
  std::map<std::pair<int, std::string>, std::vector<int64_t>> of_kind;
  for (const Json& event : trace.at("traceEvents")) {
    if (event.at("ph") != "X") continue;
    auto kind = event.at("cat").get<std::string>();
    auto start = event.at("ts").get<double>();
    bool is_inside = start < window.end && start + event.at("dur").get<double>() > window.start;
    if (!is_inside || *class_of(kind) == 0) continue;
    int rank = event.at("pid").get<int>();
    auto row = event.at("tid").get<int64_t>();
    std::vector<int64_t>& known = of_kind[{rank, kind}];
    if (std::find(known.begin(), known.end(), row) == known.end()) {
      if (known.size() == kRowsOfKind) continue;
      known.push_back(row);
    }
    rows[rank][row].push_back(&event);
  }
  return rows;
}

constexpr const char* kStyle =
    "<style>text{font:11px sans-serif;fill:#222}.phase{fill:#d0d7de}.work{fill:#2563eb}"
    ".block{fill:#16a34a}.wait{fill:#ea580c}.axis{stroke:#888}"
    "@media (prefers-color-scheme:dark){text{fill:#ddd}.phase{fill:#444c56}.work{fill:#60a5fa}"
    ".block{fill:#4ade80}.wait{fill:#fb923c}}</style>\n";

std::string legend() {
  std::string text;
  double x = kLeft;
  for (const auto& [name, label] : {std::pair{"phase", "step"},
                                    {"work", "kernels, copies"},
                                    {"block", "blocks"},
                                    {"wait", "waits"}}) {
    text +=
        fmt::format("<rect class=\"{}\" x=\"{}\" y=\"28\" width=\"10\" height=\"10\"/>", name, x);
    text += fmt::format("<text x=\"{}\" y=\"37\">{}</text>\n", x + 14, label);
    x += 120;
  }
  return text;
}

}  // namespace

std::string timeline_svg(const Json& trace, const std::string& title) {
  Window window = last_step(trace);
  Rows rows = rows_of(trace, window);
  double span = std::max(window.end - window.start, 1e-9);
  double scale = (kWidth - kLeft - kRight) / span;
  std::string body;
  double y = kTop;
  size_t shapes = 0, left_out = 0;
  for (const auto& [rank, of_rank] : rows) {
    body += fmt::format("<text x=\"8\" y=\"{}\">rank {}</text>\n", y + kRow - 3, rank);
    for (const auto& [row, events] : of_rank) {
      for (const Json* event : events) {
        if (++shapes > kMaxShapes) {
          ++left_out;
          continue;
        }
        auto start = event->at("ts").get<double>();
        double from = std::max(start, window.start);
        double to = std::min(start + event->at("dur").get<double>(), window.end);
        body += fmt::format(
            "<rect class=\"{}\" x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\"><title>{} "
            "({:.3f} us)</title></rect>\n",
            class_of(event->at("cat").get<std::string>()), kLeft + (from - window.start) * scale, y,
            std::max((to - from) * scale, 0.5), kRow - 2,
            escaped(event->at("name").get<std::string>()), event->at("dur").get<double>());
      }
      y += kRow;
    }
    y += kGap;
  }
  std::string note = rows.empty() ? "No step was run." : fmt::format("{:.2f} us", span);
  if (left_out > 0) note += fmt::format("; {} spans are not shown", left_out);
  body += fmt::format("<line class=\"axis\" x1=\"{}\" x2=\"{}\" y1=\"{}\" y2=\"{}\"/>", kLeft,
                      kWidth - kRight, y, y);
  body += fmt::format("<text x=\"{}\" y=\"{}\">{}</text>\n", kLeft, y + 16, note);
  std::string head = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {} {}\" role=\"img\" "
      "aria-labelledby=\"title desc\">\n<title id=\"title\">{}</title>\n<desc id=\"desc\">One step "
      "in virtual time: for each rank its step, kernels and copies, blocks and waits. {}</desc>\n",
      kWidth, y + 26, escaped(title), note);
  return head + kStyle + fmt::format("<text x=\"8\" y=\"18\">{}</text>\n", escaped(title)) +
         legend() + body + "</svg>\n";
}

}  // namespace cb::cli
