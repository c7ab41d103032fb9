#include "base/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <numeric>

namespace cb {

std::vector<std::string> split(std::string_view text, char separator) {
  std::vector<std::string> parts;
  size_t start = 0;
  for (size_t end = text.find(separator); end != std::string_view::npos;
       end = text.find(separator, start)) {
    parts.emplace_back(text.substr(start, end - start));
    start = end + 1;
  }
  parts.emplace_back(text.substr(start));
  return parts;
}

std::string_view trim(std::string_view text) {
  size_t first = text.find_first_not_of(" \t\r\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r\n") - first + 1);
}

std::optional<int64_t> parse_bytes_or_integer(std::string_view text) {
  int64_t value = 0;
  const char* end = text.data() + text.size();
  auto [rest, status] = std::from_chars(text.data(), end, value);
  if (status != std::errc()) return std::nullopt;
  if (rest == end) return value;
  static constexpr std::string_view kUnits = "KMGT";
  size_t unit = kUnits.find(*rest);
  if (unit == std::string_view::npos || rest + 1 != end) return std::nullopt;
  int64_t scaled = 0;
  if (__builtin_mul_overflow(value, int64_t{1} << (10 * (unit + 1)), &scaled)) return std::nullopt;
  return scaled;
}

namespace {

// The length of the valid UTF-8 sequence at the start of `text`, or 0. Rejects overlong forms and
// surrogates, which terminals may decode in their own ways.
size_t utf8_length(std::string_view text) {
  auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  auto continuation = [&](size_t i) { return i < text.size() && (byte(i) & 0xc0) == 0x80; };
  if (byte(0) >= 0xc2 && byte(0) <= 0xdf && continuation(1)) return 2;
  if (byte(0) >= 0xe0 && byte(0) <= 0xef && continuation(1) && continuation(2)) {
    if (byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
    if (byte(0) == 0xed && byte(1) >= 0xa0) return 0;
    return 3;
  }
  if (byte(0) >= 0xf0 && byte(0) <= 0xf4 && continuation(1) && continuation(2) && continuation(3)) {
    if (byte(0) == 0xf0 && byte(1) < 0x90) return 0;
    if (byte(0) == 0xf4 && byte(1) >= 0x90) return 0;
    return 4;
  }
  return 0;
}

// C1 controls, bidirectional overrides and line separators: valid UTF-8 that can still repaint a
// terminal line.
bool is_unsafe_sequence(std::string_view sequence) {
  if (sequence.size() == 2 && sequence[0] == '\xc2' &&
      static_cast<unsigned char>(sequence[1]) < 0xa0) {
    return true;
  }
  if (sequence.size() != 3 || sequence[0] != '\xe2') return false;
  unsigned char second = static_cast<unsigned char>(sequence[1]);
  unsigned char third = static_cast<unsigned char>(sequence[2]);
  return (second == 0x80 && third >= 0xa8 && third <= 0xae) ||
         (second == 0x81 && third >= 0xa6 && third <= 0xa9);
}

}  // namespace

std::string printable(std::string_view text, size_t max_bytes) {
  std::string safe;
  size_t i = 0;
  while (i < text.size() && safe.size() < max_bytes) {
    unsigned char c = static_cast<unsigned char>(text[i]);
    if (c == '\n' || c == '\t' || (c >= 0x20 && c < 0x7f)) {
      safe.push_back(text[i++]);
      continue;
    }
    size_t length = c >= 0x80 ? utf8_length(text.substr(i)) : 0;
    if (length > 0 && !is_unsafe_sequence(text.substr(i, length))) {
      safe.append(text.substr(i, length));
      i += length;
    } else {
      safe += fmt::format("\\x{:02x}", c);
      ++i;
    }
  }
  if (i < text.size()) safe += fmt::format(" [... {} bytes more]", text.size() - i);
  return safe;
}

std::string format_time_ps(uint64_t picoseconds) {
  double ns = static_cast<double>(picoseconds) / 1e3;
  if (ns < 1e3) return fmt::format("{:.0f} ns", ns);
  if (ns < 1e6) return fmt::format("{:.2f} us", ns / 1e3);
  if (ns < 1e9) return fmt::format("{:.2f} ms", ns / 1e6);
  return fmt::format("{:.2f} s", ns / 1e9);
}

std::string format_bytes(uint64_t bytes) {
  static constexpr const char* kUnits[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  size_t unit = 0;
  double value = static_cast<double>(bytes);
  while (value >= 1024 && unit + 1 < std::size(kUnits)) {
    value /= 1024;
    ++unit;
  }
  bool whole = value == static_cast<double>(static_cast<uint64_t>(value));
  return whole ? fmt::format("{:.0f} {}", value, kUnits[unit])
               : fmt::format("{:.1f} {}", value, kUnits[unit]);
}

std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& known) {
  std::optional<std::string> best;
  size_t best_distance = 3;
  for (const std::string& candidate : known) {
    std::vector<size_t> row(candidate.size() + 1);
    std::iota(row.begin(), row.end(), size_t{0});
    for (size_t i = 1; i <= word.size(); ++i) {
      size_t diagonal = row[0];
      row[0] = i;
      for (size_t j = 1; j <= candidate.size(); ++j) {
        size_t substituted = diagonal + (word[i - 1] == candidate[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({row[j] + 1, row[j - 1] + 1, substituted});
      }
    }
    if (row.back() < best_distance) {
      best_distance = row.back();
      best = candidate;
    }
  }
  return best;
}

}  // namespace cb
