#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace cb::ptx {

enum class TokenKind : uint8_t {
  kEnd,         ///< end of the text, or of what can be read of it: see Lexer::error()
  kIdentifier,  ///< `%r1`, `$L__BB0_2`, `_`, `foo`
  kWord,        ///< a dotted word, with its dot: `.u32`, `.L1::no_allocate`, `.2d`
  kInteger,     ///< `bits`
  kFloat,       ///< `bits`: 32-bit pattern if `is_single`, else 64-bit
  kString,      ///< `text` without the quotes
  kSymbol       ///< an operator or bracket of one or two characters
};

struct Token {
  TokenKind kind = TokenKind::kEnd;
  bool is_unsigned = false;  ///< an integer with suffix U, or too large for 64 signed bits
  bool is_single = false;    ///< 0f...
  uint32_t line = 1;
  std::string_view text;  ///< into the text given to the lexer
  uint64_t bits = 0;
};

/// Splits PTX text (ISA 9.0, section 4) into tokens, skipping blanks and comments.
class Lexer {
 public:
  /// Keeps a view of `text`.
  explicit Lexer(std::string_view text) : text_(text) {}

  /// The next token; kEnd again and again once the text has ended or an error occurred.
  Token next();
  /// Reads a word such as `.5`, that stands where a number is expected, as a number. `word` is the
  /// token that next() returned last.
  Token number_from(const Token& word);
  /// Empty, or what is wrong with the text at the line of the last token.
  const std::string& error() const { return error_; }

 private:
  void skip_blanks();
  Token fail(std::string message);
  Token finish(TokenKind kind, size_t begin, size_t end);
  Token word(size_t begin);
  Token number(size_t begin);
  Token float_pattern(size_t begin, size_t digits);
  Token integer(size_t begin, size_t digits, int base);
  Token decimal_float(size_t begin);
  Token string(size_t begin);

  char at(size_t position) const { return position < text_.size() ? text_[position] : '\0'; }

  std::string_view text_;
  size_t position_ = 0;
  uint32_t line_ = 1;
  std::string error_;
};

}  // namespace cb::ptx
