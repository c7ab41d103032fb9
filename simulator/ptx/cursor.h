#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "simulator/ptx/lexer.h"

namespace cb::ptx {

/// The token under consideration and the first error of a parse. After an error every token is
/// kEnd, so that no loop goes on; functions that parse return false once there is an error.
class Cursor {
 public:
  explicit Cursor(std::string_view text) : lexer_(text) { advance(); }

  const Token& token() const { return token_; }
  void advance();

  /// Whether the token is this operator or bracket, of one character.
  bool is(char symbol) const {
    return token_.kind == TokenKind::kSymbol && token_.text.size() == 1 && token_.text[0] == symbol;
  }
  bool is(TokenKind kind) const { return token_.kind == kind; }
  /// Whether the token is this dotted word.
  bool is_word(std::string_view word) const {
    return token_.kind == TokenKind::kWord && token_.text == word;
  }

  /// Passes the token if it is this one.
  bool accept(char symbol);
  bool accept_word(std::string_view word);
  /// Passes the token, or fails. `after` says what came before, for the message.
  bool expect(char symbol, std::string_view after);
  bool identifier(std::string_view& text, std::string_view what);
  bool string(std::string_view& text, std::string_view what);
  /// A plain integer literal not above `max`.
  bool integer(uint64_t& value, uint64_t max, std::string_view what);
  /// Reads a word such as `.5` as the number it is.
  void word_to_number();

  /// Records the first error, at the token's line or at `line`. Always false.
  bool fail(const std::string& message);
  bool fail_at(uint32_t line, const std::string& message);
  /// Fails with "expected <what>, found <token>".
  bool unexpected(std::string_view what);

  /// "ptx:<line>: <message>" of the first error.
  const std::optional<std::string>& error() const { return error_; }

 private:
  Lexer lexer_;
  Token token_;
  std::optional<std::string> error_;
};

/// A name from the text in double quotes, short and safe to print.
std::string quoted(std::string_view name);

}  // namespace cb::ptx
