#include "base/tty.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>

#include "base/check.h"

namespace cb {
namespace {

constexpr int64_t kPlainIntervalMs = 30'000;

int64_t now_ms() {
  using namespace std::chrono;
  return duration_cast<milliseconds>(steady_clock::now().time_since_epoch()).count();
}

const char* escape_of(Color color) {
  switch (color) {
    case Color::kPlain:
      return "";
    case Color::kGreen:
      return "\x1b[32m";
    case Color::kRed:
      return "\x1b[31m";
    case Color::kYellow:
      return "\x1b[33m";
    case Color::kDim:
      return "\x1b[2m";
    case Color::kBold:
      return "\x1b[1m";
  }
  return "";
}

// Columns on a terminal: UTF-8 continuation bytes take no room. Wide characters are not used in
// our tables.
size_t width_of(const std::string& text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xc0) != 0x80;
  }));
}

}  // namespace

bool use_color(std::FILE* stream) {
  const char* no_color = std::getenv("NO_COLOR");
  if (no_color != nullptr && *no_color != '\0') return false;
  const char* term = std::getenv("TERM");
  if (term == nullptr || std::strcmp(term, "dumb") == 0) return false;
  return ::isatty(::fileno(stream)) == 1;
}

std::string colored(const std::string& text, Color color, bool enabled) {
  if (!enabled || color == Color::kPlain) return text;
  return escape_of(color) + text + "\x1b[0m";
}

void Table::add_row(std::vector<Cell> cells) {
  CB_CHECK(cells.size() == columns_.size(), "a row has one cell per column");
  rows_.push_back(std::move(cells));
}

std::string Table::render(bool color) const {
  std::vector<size_t> widths;
  for (size_t c = 0; c < columns_.size(); ++c) {
    size_t width = width_of(columns_[c].title);
    for (const auto& row : rows_) width = std::max(width, width_of(row[c].text));
    widths.push_back(width);
  }
  std::string out;
  auto line = [&](auto&& text_of, auto&& color_of) {
    std::string rendered;
    for (size_t c = 0; c < columns_.size(); ++c) {
      const std::string& text = text_of(c);
      std::string padding(widths[c] - width_of(text), ' ');
      std::string cell = colored(text, color_of(c), color);
      if (c > 0) rendered += "  ";
      rendered += columns_[c].align == Align::kRight ? padding + cell : cell + padding;
    }
    rendered.erase(rendered.find_last_not_of(' ') + 1);
    out += rendered + "\n";
  };
  line([&](size_t c) -> const std::string& { return columns_[c].title; },
       [](size_t) { return Color::kBold; });
  for (const auto& row : rows_) {
    line([&](size_t c) -> const std::string& { return row[c].text; },
         [&](size_t c) { return row[c].color; });
  }
  return out;
}

Progress::Progress(bool quiet)
    : quiet_(quiet), terminal_(::isatty(STDERR_FILENO) == 1), last_plain_ms_(now_ms()) {}

Progress::~Progress() { clear(); }

void Progress::update(const std::string& line) {
  if (quiet_) return;
  if (terminal_) {
    winsize size{};
    size_t columns =
        ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0 ? size.ws_col : 80;
    std::fprintf(stderr, "\r\x1b[2K%s", line.substr(0, columns - 1).c_str());
    std::fflush(stderr);
    shown_ = true;
  } else if (now_ms() - last_plain_ms_ >= kPlainIntervalMs) {
    std::fprintf(stderr, "%s\n", line.c_str());
    last_plain_ms_ = now_ms();
  }
}

void Progress::clear() {
  if (shown_) std::fputs("\r\x1b[2K", stderr);
  shown_ = false;
}

}  // namespace cb
