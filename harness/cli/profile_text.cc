#include "harness/cli/profile_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <vector>

#include "base/text.h"
#include "base/tty.h"

namespace cb::cli {
namespace {

constexpr size_t kShownLines = 12;
constexpr size_t kShownSource = 56;

std::string place_text(const Json& line) {
  if (line.contains("ptx_line")) return fmt::format("PTX:{}", line.at("ptx_line").get<uint32_t>());
  std::string file = std::filesystem::path(line.at("file").get<std::string>()).filename().string();
  return fmt::format("{}:{}", printable(file, 40), line.at("line").get<uint32_t>());
}

std::string main_stall(const Json& line) {
  std::string name = "-";
  uint64_t most = 0;
  for (const auto& [stall, time] : line.at("stalls").items()) {
    if (time.get<uint64_t>() > most) {
      most = time.get<uint64_t>();
      name = stall;
    }
  }
  auto total = line.at("time_ps").get<double>();
  return total == 0 ? name
                    : fmt::format("{} {:.0f}%", name, static_cast<double>(most) / total * 100);
}

uint64_t link_bytes(const Json& line) {
  uint64_t bytes = 0;
  for (const Json& link : line.at("bytes").at("links")) bytes += link.at("bytes").get<uint64_t>();
  return bytes;
}

std::string bytes_text(uint64_t bytes) { return bytes == 0 ? "-" : format_bytes(bytes); }

}  // namespace

std::string profile_text(const Json& profile, bool color) {
  if (profile.is_null()) return "no profile: no case got as far as running a kernel\n";
  std::vector<const Json*> lines;
  for (const Json& kernel : profile.at("kernels")) {
    for (const Json& line : kernel.at("lines")) lines.push_back(&line);
  }
  std::stable_sort(lines.begin(), lines.end(), [](const Json* one, const Json* other) {
    return one->at("time_ps").get<uint64_t>() > other->at("time_ps").get<uint64_t>();
  });
  auto total = profile.at("time_ps").get<double>();
  if (lines.empty() || total == 0) return "no profile: no kernel was run\n";
  using Align = Table::Align;
  Table table({{"line"},
               {"time", Align::kRight},
               {"main stall"},
               {"device", Align::kRight},
               {"NVLink", Align::kRight},
               {"host", Align::kRight},
               {"source"}});
  for (size_t i = 0; i < std::min(lines.size(), kShownLines); ++i) {
    const Json& line = *lines[i];
    const Json& bytes = line.at("bytes");
    table.add_row({{place_text(line)},
                   {fmt::format("{:.1f}%", line.at("time_ps").get<double>() / total * 100)},
                   {main_stall(line)},
                   {bytes_text(bytes.at("device").get<uint64_t>())},
                   {bytes_text(link_bytes(line))},
                   {bytes_text(bytes.at("host").get<uint64_t>())},
                   {printable(line.value("source", std::string()), kShownSource)}});
  }
  return fmt::format("where case {} spends the time of its warps ({} lines in all):\n",
                     profile.at("case").get<std::string>(), lines.size()) +
         table.render(color);
}

}  // namespace cb::cli
