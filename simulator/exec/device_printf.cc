// printf of device code. The format and all that it points at are the kernel's: every byte is
// checked like a load, and widths are bounded.

#include <fmt/format.h>

#include <cstdio>
#include <cstring>

#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

constexpr size_t kMaxString = 4096;
/// Of a width or precision: a longer one is a mistake or an attack.
constexpr size_t kMaxDigits = 3;
/// What CUDA's printf takes besides the format.
constexpr int kMaxArguments = 32;

bool lies_in(uint64_t address, uint64_t bytes, uint64_t begin, uint64_t length) {
  return address >= begin && address - begin < length && length - (address - begin) >= bytes;
}

/// Copies bytes from where the kernel may read them: allocations, the block's shared memory, or the
/// thread's local memory.
bool read_bytes(const Context& c, uint64_t address, void* out, uint64_t bytes) {
  bool is_scratch = lies_in(address, bytes, c.local_base, c.local_lane_bytes * kLanes) ||
                    lies_in(address, bytes, c.shared_base, c.shared_bytes);
  if (!is_scratch &&
      c.memory->check(address, bytes, c.run->accessor, false).fault != AccessFault::kNone) {
    return false;
  }
  std::memcpy(out, reinterpret_cast<const void*>(address), bytes);
  return true;
}

/// One conversion, such as "%-8.3lf".
struct Conversion {
  std::string flags_and_width;
  bool is_long_long = false;
  char letter = 0;
};

/// The variable arguments: each at a multiple of its size.
class Arguments {
 public:
  Arguments(const Context& c, uint64_t base) : c_(c), base_(base) {}

  template <typename T>
  bool next(T& value) {
    offset_ = (offset_ + sizeof(T) - 1) / sizeof(T) * sizeof(T);
    if (is_exhausted() || !read_bytes(c_, base_ + offset_, &value, sizeof(T))) return false;
    offset_ += sizeof(T);
    ++count_;
    return true;
  }

  int count() const { return count_; }
  bool is_exhausted() const { return count_ == kMaxArguments; }

 private:
  const Context& c_;
  uint64_t base_;
  uint64_t offset_ = 0;
  int count_ = 0;
};

/// Parses the conversion that follows a '%'; false for one that does not end.
bool parse(std::string_view format, size_t& at, Arguments& arguments, Conversion& result) {
  size_t digits = 0;
  for (; at < format.size(); ++at) {
    char letter = format[at];
    bool is_digit = letter >= '0' && letter <= '9';
    digits = is_digit ? digits + 1 : 0;
    if (digits > kMaxDigits || result.flags_and_width.size() > 12) return false;
    if (letter == '*') {
      int32_t width = 0;
      if (!arguments.next(width) || width < -999 || width > 999) return false;
      result.flags_and_width += std::to_string(width);
    } else if (is_digit || letter == '.' || letter == '-' || letter == '+' || letter == ' ' ||
               letter == '#') {
      result.flags_and_width += letter;
    } else if (letter == 'l') {
      result.is_long_long = true;
    } else if (letter == 'h' || letter == 'j' || letter == 'z' || letter == 't') {
      result.is_long_long |= letter != 'h';
    } else {
      result.letter = letter;
      ++at;
      return true;
    }
  }
  return false;
}

template <typename T>
bool put(const Conversion& conversion, const char* length, T value, std::string& out) {
  std::string format = "%" + conversion.flags_and_width + length + conversion.letter;
  char buffer[2048];
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
  int size = std::snprintf(buffer, sizeof buffer, format.c_str(), value);
#pragma GCC diagnostic pop
  if (size < 0) return false;
  out.append(buffer, std::min<size_t>(static_cast<size_t>(size), sizeof buffer - 1));
  return true;
}

bool convert(Context& c, const Conversion& conversion, Arguments& arguments, std::string& out) {
  switch (conversion.letter) {
    case 'd':
    case 'i':
    case 'u':
    case 'o':
    case 'x':
    case 'X':
    case 'c':
      if (conversion.is_long_long) {
        long long value = 0;
        return arguments.next(value) && put(conversion, "ll", value, out);
      } else {
        int32_t value = 0;
        return arguments.next(value) && put(conversion, "", value, out);
      }
    case 'e':
    case 'E':
    case 'f':
    case 'F':
    case 'g':
    case 'G':
    case 'a':
    case 'A': {
      double value = 0;
      return arguments.next(value) && put(conversion, "", value, out);
    }
    case 'p': {
      uint64_t value = 0;
      return arguments.next(value) && put(conversion, "", reinterpret_cast<void*>(value), out);
    }
    case 's': {
      uint64_t address = 0;
      if (!arguments.next(address)) return false;
      if (address == 0) return put(conversion, "", "(null)", out);
      auto text = device_string(c, address);
      return text && put(conversion, "", text->c_str(), out);
    }
    default:
      out += '%';
      out += conversion.letter;
      return true;
  }
}

}  // namespace

std::optional<std::string> device_string(Context& c, uint64_t address) {
  std::string text;
  char letter = 0;
  while (text.size() < kMaxString) {
    if (!read_bytes(c, address + text.size(), &letter, 1)) return std::nullopt;
    if (letter == 0) return text;
    text += letter;
  }
  return text;
}

const MicroOp* print_formatted(Context& c, const MicroOp* op, uint64_t format_address,
                               uint64_t arguments_address, int lane, std::string& out,
                               int32_t& result) {
  if (format_address == 0) {
    result = -1;
    return op + 1;
  }
  auto format = device_string(c, format_address);
  if (!format) {
    return fault(c, op, Finding::Kind::kIllegalAddress, lane,
                 fmt::format("printf's format at {}", c.memory->describe(format_address)),
                 format_address, 1);
  }
  Arguments arguments(c, arguments_address);
  for (size_t at = 0; at < format->size();) {
    char letter = (*format)[at++];
    if (letter != '%') {
      out += letter;
      continue;
    }
    if (at < format->size() && (*format)[at] == '%') {
      out += '%';
      ++at;
      continue;
    }
    // What has no argument any more is printed as it is.
    if (arguments.is_exhausted()) {
      out += '%';
      continue;
    }
    Conversion conversion;
    if (!parse(*format, at, arguments, conversion) || !convert(c, conversion, arguments, out)) {
      return fault(
          c, op, Finding::Kind::kIllegalAddress, lane,
          fmt::format("printf cannot print its arguments as \"{}\"", format->substr(0, 80)),
          arguments_address, 1);
    }
  }
  result = arguments.count();
  return op + 1;
}

}  // namespace cb::sim
