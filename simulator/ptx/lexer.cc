#include "simulator/ptx/lexer.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <charconv>

#include "base/text.h"

namespace cb::ptx {
namespace {

// One token at a time, without tables beyond the set of identifier characters. Two things in PTX
// need care: `.2d` is a word but `.5` where a number is expected is not, which only the parser can
// tell (number_from), and `0f`, `0d` and `0b` begin numbers, not identifiers.

constexpr std::array<bool, 256> kIdentifierCharacters = [] {
  std::array<bool, 256> result{};
  for (int c = 'a'; c <= 'z'; ++c) result[c] = result[c - 'a' + 'A'] = true;
  for (int c = '0'; c <= '9'; ++c) result[c] = true;
  result['_'] = result['$'] = true;
  return result;
}();

bool is_identifier(char c) { return kIdentifierCharacters[static_cast<unsigned char>(c)]; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

int digit_value(char c) {
  if (is_digit(c)) return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return 99;
}

constexpr std::array<std::string_view, 8> kPairs = {"<<", ">>", "<=", ">=", "==", "!=", "&&", "||"};
constexpr std::string_view kSingles = "()[]{}<>,;:@!|&^~+-*/%=?";

}  // namespace

Token Lexer::fail(std::string message) {
  error_ = std::move(message);
  position_ = text_.size();
  return finish(TokenKind::kEnd, position_, position_);
}

Token Lexer::finish(TokenKind kind, size_t begin, size_t end) {
  position_ = end;
  Token token;
  token.kind = kind;
  token.line = line_;
  token.text = text_.substr(begin, end - begin);
  return token;
}

void Lexer::skip_blanks() {
  while (position_ < text_.size()) {
    char c = text_[position_];
    if (c == '\n') {
      ++line_;
      ++position_;
    } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
      ++position_;
    } else if (c == '/' && at(position_ + 1) == '/') {
      position_ = std::min(text_.find('\n', position_), text_.size());
    } else if (c == '/' && at(position_ + 1) == '*') {
      size_t end = text_.find("*/", position_ + 2);
      if (end == std::string_view::npos) {
        fail("comment /* without an end");
        return;
      }
      for (; position_ < end; ++position_) line_ += text_[position_] == '\n';
      position_ = end + 2;
    } else {
      return;
    }
  }
}

Token Lexer::next() {
  skip_blanks();
  size_t begin = position_;
  if (begin >= text_.size()) return finish(TokenKind::kEnd, begin, begin);
  char c = text_[begin];
  if (is_digit(c)) return number(begin);
  if (c == '.') return word(begin);
  if (c == '"') return string(begin);
  if (is_identifier(c) || (c == '%' && is_identifier(at(begin + 1)) && !is_digit(at(begin + 1)))) {
    size_t end = begin + 1;
    while (is_identifier(at(end))) ++end;
    return finish(TokenKind::kIdentifier, begin, end);
  }
  std::string_view two = text_.substr(begin, 2);
  for (std::string_view pair : kPairs) {
    if (two == pair) return finish(TokenKind::kSymbol, begin, begin + 2);
  }
  if (kSingles.find(c) != std::string_view::npos) {
    return finish(TokenKind::kSymbol, begin, begin + 1);
  }
  return fail(fmt::format("character \"{}\" has no meaning in PTX", printable({&c, 1})));
}

Token Lexer::word(size_t begin) {
  size_t end = begin + 1;
  while (is_identifier(at(end)) ||
         (at(end) == ':' && at(end + 1) == ':' && is_identifier(at(end + 2)))) {
    end += at(end) == ':' ? 2 : 1;
  }
  if (end == begin + 1) return fail("a dot without a word");
  return finish(TokenKind::kWord, begin, end);
}

Token Lexer::string(size_t begin) {
  size_t end = begin + 1;
  while (at(end) != '"') {
    if (end >= text_.size() || text_[end] == '\n') return fail("string without a closing quote");
    end += text_[end] == '\\' && at(end + 1) != '\n' ? 2 : 1;
  }
  Token token = finish(TokenKind::kString, begin, end + 1);
  token.text = token.text.substr(1, token.text.size() - 2);
  return token;
}

Token Lexer::number_from(const Token& word) {
  return decimal_float(static_cast<size_t>(word.text.data() - text_.data()));
}

Token Lexer::number(size_t begin) {
  if (text_[begin] == '0') {
    switch (at(begin + 1)) {
      case 'f':
      case 'F':
        return float_pattern(begin, 8);
      case 'd':
      case 'D':
        return float_pattern(begin, 16);
      case 'x':
      case 'X':
        return integer(begin, begin + 2, 16);
      case 'b':
      case 'B':
        return integer(begin, begin + 2, 2);
      default:
        break;
    }
  }
  size_t end = begin;
  while (is_digit(at(end))) ++end;
  char c = at(end);
  if (c == '.' || c == 'e' || c == 'E') return decimal_float(begin);
  bool octal = text_[begin] == '0' && end > begin + 1;
  return integer(begin, begin, octal ? 8 : 10);
}

Token Lexer::float_pattern(size_t begin, size_t digits) {
  size_t end = begin + 2;
  uint64_t bits = 0;
  for (; digit_value(at(end)) < 16 && end < begin + 2 + digits; ++end) {
    bits = bits << 4 | static_cast<uint64_t>(digit_value(text_[end]));
  }
  if (end != begin + 2 + digits || is_identifier(at(end))) {
    return fail(
        fmt::format("{} needs exactly {} hexadecimal digits", text_.substr(begin, 2), digits));
  }
  Token token = finish(TokenKind::kFloat, begin, end);
  token.bits = bits;
  token.is_single = digits == 8;
  return token;
}

Token Lexer::integer(size_t begin, size_t digits, int base) {
  uint64_t value = 0;
  size_t end = digits;
  bool overflow = false;
  for (; digit_value(at(end)) < base; ++end) {
    uint64_t digit = static_cast<uint64_t>(digit_value(text_[end]));
    overflow |= __builtin_mul_overflow(value, static_cast<uint64_t>(base), &value);
    overflow |= __builtin_add_overflow(value, digit, &value);
  }
  size_t value_end = end;
  bool has_suffix = at(end) == 'U' || at(end) == 'u';
  if (has_suffix) ++end;
  if (value_end == digits || is_identifier(at(end))) {
    while (is_identifier(at(end))) ++end;
    return fail(
        fmt::format("\"{}\" is not a number", printable(text_.substr(begin, end - begin), 80)));
  }
  if (overflow) {
    return fail(fmt::format("the number {} does not fit in 64 bits",
                            printable(text_.substr(begin, end - begin), 80)));
  }
  Token token = finish(TokenKind::kInteger, begin, end);
  token.bits = value;
  token.is_unsigned = has_suffix || (value >> 63) != 0;
  return token;
}

Token Lexer::decimal_float(size_t begin) {
  double value = 0;
  auto [end_pointer, error] =
      std::from_chars(text_.data() + begin, text_.data() + text_.size(), value);
  size_t end = static_cast<size_t>(end_pointer - text_.data());
  if (error != std::errc{} || is_identifier(at(end))) {
    end = begin;
    while (is_identifier(at(end)) || at(end) == '.') ++end;
    return fail(fmt::format("\"{}\" is not a floating-point number that a double can hold",
                            printable(text_.substr(begin, end - begin), 80)));
  }
  Token token = finish(TokenKind::kFloat, begin, end);
  token.bits = std::bit_cast<uint64_t>(value);
  return token;
}

}  // namespace cb::ptx
