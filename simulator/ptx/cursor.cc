#include "simulator/ptx/cursor.h"

#include <fmt/format.h>

#include "base/text.h"

namespace cb::ptx {

std::string quoted(std::string_view name) { return '"' + printable(name, 200) + '"'; }

void Cursor::advance() {
  if (error_) return;
  token_ = lexer_.next();
  if (!lexer_.error().empty()) fail(lexer_.error());
}

void Cursor::word_to_number() {
  token_ = lexer_.number_from(token_);
  if (!lexer_.error().empty()) fail(lexer_.error());
}

bool Cursor::accept(char symbol) {
  if (!is(symbol)) return false;
  advance();
  return true;
}

bool Cursor::accept_word(std::string_view word) {
  if (!is_word(word)) return false;
  advance();
  return true;
}

bool Cursor::expect(char symbol, std::string_view after) {
  if (accept(symbol)) return !error_;
  return unexpected(fmt::format("\"{}\" after {}", symbol, after));
}

bool Cursor::identifier(std::string_view& text, std::string_view what) {
  if (!is(TokenKind::kIdentifier)) return unexpected(what);
  text = token_.text;
  advance();
  return !error_;
}

bool Cursor::string(std::string_view& text, std::string_view what) {
  if (!is(TokenKind::kString)) return unexpected(what);
  text = token_.text;
  advance();
  return !error_;
}

bool Cursor::integer(uint64_t& value, uint64_t max, std::string_view what) {
  if (!is(TokenKind::kInteger)) return unexpected(what);
  value = token_.bits;
  if (value > max) return fail(fmt::format("{} {} is above the limit of {}", what, value, max));
  advance();
  return !error_;
}

bool Cursor::fail(const std::string& message) { return fail_at(token_.line, message); }

bool Cursor::fail_at(uint32_t line, const std::string& message) {
  if (!error_) error_ = fmt::format("ptx:{}: {}", line, message);
  token_.kind = TokenKind::kEnd;
  token_.text = {};
  return false;
}

bool Cursor::unexpected(std::string_view what) {
  if (is(TokenKind::kEnd)) return fail(fmt::format("expected {}, found the end of the text", what));
  return fail(fmt::format("expected {}, found {}", what, quoted(token_.text)));
}

}  // namespace cb::ptx
