#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace cb {

std::vector<std::string> split(std::string_view text, char separator);
std::string_view trim(std::string_view text);

/// "64", "-3", "4K", "16M", "2G" (powers of 1024); nothing else, and nothing that overflows.
std::optional<int64_t> parse_bytes_or_integer(std::string_view text);

/// Untrusted text made safe to print: control characters and invalid UTF-8 are shown as escapes
/// (`\x1b`), newline and tab stay. At most `max_bytes`, then " [... N bytes more]".
std::string printable(std::string_view text, size_t max_bytes = 4096);

/// "1.5 us", "23.4 ms": picoseconds for people.
std::string format_time_ps(uint64_t picoseconds);

/// "64", "4 KiB", "16 MiB": exact powers of 1024 where they are, else one decimal.
std::string format_bytes(uint64_t bytes);

/// The entry of `known` closest to `word` (edit distance at most 2), for "did you mean".
std::optional<std::string> closest(std::string_view word, const std::vector<std::string>& known);

}  // namespace cb
