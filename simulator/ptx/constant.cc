#include "simulator/ptx/constant.h"

#include <fmt/format.h>

#include <array>
#include <bit>
#include <string_view>

namespace cb::ptx {
namespace {

// Precedence climbing over the operators of C. Recursion is bounded: unary operators, parentheses
// and `?:` count against max_depth, and binary operators nest at most kMaxPrecedence deep in each.

struct Operator {
  std::string_view text;
  int precedence;
};

constexpr std::array<Operator, 18> kOperators = {{
    {"||", 1},
    {"&&", 2},
    {"|", 3},
    {"^", 4},
    {"&", 5},
    {"==", 6},
    {"!=", 6},
    {"<", 7},
    {"<=", 7},
    {">", 7},
    {">=", 7},
    {"<<", 8},
    {">>", 8},
    {"+", 9},
    {"-", 9},
    {"*", 10},
    {"/", 10},
    {"%", 10},
}};

int precedence_of(const Token& token) {
  if (token.kind != TokenKind::kSymbol) return 0;
  for (const Operator& op : kOperators) {
    if (op.text == token.text) return op.precedence;
  }
  return 0;
}

Constant integer(uint64_t bits, bool is_unsigned = false) {
  Constant value;
  value.bits = bits;
  value.is_unsigned = is_unsigned;
  return value;
}

Constant float64(double number) {
  Constant value;
  value.is_float = true;
  value.bits = std::bit_cast<uint64_t>(number);
  return value;
}

class Evaluator {
 public:
  Evaluator(Cursor& cursor, size_t max_depth) : cursor_(cursor), left_(max_depth) {}

  bool ternary(Constant& value) {
    if (!enter()) return false;
    if (!binary(1, value)) return false;
    if (cursor_.accept('?')) {
      Constant then, otherwise;
      if (!ternary(then) || !cursor_.expect(':', "the first choice of \"?\"")) return false;
      if (!ternary(otherwise)) return false;
      value = value.is_zero() ? otherwise : then;
    }
    ++left_;
    return true;
  }

 private:
  bool enter() {
    if (left_ == 0) return cursor_.fail("the constant expression nests too deep");
    --left_;
    return true;
  }

  bool binary(int lowest, Constant& value) {
    if (!unary(value)) return false;
    for (;;) {
      std::string_view op = cursor_.token().text;
      int precedence = precedence_of(cursor_.token());
      if (precedence < lowest || precedence == 0) return !cursor_.error();
      cursor_.advance();
      Constant right;
      if (!binary(precedence + 1, right)) return false;
      bool ok = value.is_float || right.is_float ? apply_float(op, value, right)
                                                 : apply_integer(op, value, right);
      if (!ok) return false;
    }
  }

  bool unary(Constant& value) {
    if (!enter()) return false;
    bool ok;
    if (cursor_.accept('+')) {
      ok = unary(value);
    } else if (cursor_.accept('-')) {
      ok = unary(value);
      negate(value);
    } else if (cursor_.accept('!')) {
      ok = unary(value);
      value = integer(value.is_zero());
    } else if (cursor_.accept('~')) {
      ok = unary(value);
      if (ok && value.is_float) return cursor_.fail("\"~\" of a floating-point number");
      value.bits = ~value.bits;
    } else {
      ok = primary(value);
    }
    ++left_;
    return ok;
  }

  static void negate(Constant& value) {
    if (value.is_float) {
      value.bits ^= value.is_single ? uint64_t{1} << 31 : uint64_t{1} << 63;
    } else {
      value.bits = -value.bits;
    }
  }

  bool primary(Constant& value) {
    const Token& token = cursor_.token();
    if (token.kind == TokenKind::kWord && token.text.size() > 1 && token.text[1] >= '0' &&
        token.text[1] <= '9') {
      cursor_.word_to_number();
    }
    if (token.kind == TokenKind::kInteger) {
      value = integer(token.bits, token.is_unsigned);
    } else if (token.kind == TokenKind::kFloat) {
      value = {true, token.is_single, false, token.bits};
    } else if (token.kind == TokenKind::kIdentifier && token.text == "WARP_SZ") {
      value = integer(32);
    } else if (cursor_.accept('(')) {
      return parenthesised(value);
    } else {
      return cursor_.unexpected("a constant");
    }
    cursor_.advance();
    return !cursor_.error();
  }

  bool parenthesised(Constant& value) {
    bool to_signed = cursor_.accept_word(".s64");
    if (to_signed || cursor_.accept_word(".u64")) {
      if (!cursor_.expect(')', "the type of a cast") || !unary(value)) return false;
      if (value.is_float) return cursor_.fail("a cast of a floating-point number");
      value.is_unsigned = !to_signed;
      return true;
    }
    return ternary(value) && cursor_.expect(')', "a constant expression");
  }

  bool apply_integer(std::string_view op, Constant& left, const Constant& right) {
    bool is_unsigned = left.is_unsigned || right.is_unsigned;
    uint64_t a = left.bits, b = right.bits;
    auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    if ((op == "/" || op == "%") && b == 0) return cursor_.fail("division of a constant by zero");
    if (op == "+") {
      left = integer(a + b, is_unsigned);
    } else if (op == "-") {
      left = integer(a - b, is_unsigned);
    } else if (op == "*") {
      left = integer(a * b, is_unsigned);
    } else if (op == "/" || op == "%") {
      left = integer(divide(a, b, is_unsigned, op == "%"), is_unsigned);
    } else if (op == "&") {
      left = integer(a & b, is_unsigned);
    } else if (op == "|") {
      left = integer(a | b, is_unsigned);
    } else if (op == "^") {
      left = integer(a ^ b, is_unsigned);
    } else if (op == "<<" || op == ">>") {
      left = integer(shift(left, b, op == "<<"), left.is_unsigned);
    } else if (op == "&&") {
      left = integer(a != 0 && b != 0);
    } else if (op == "||") {
      left = integer(a != 0 || b != 0);
    } else {
      left = integer(is_unsigned ? compare(op, a, b) : compare(op, sa, sb));
    }
    return true;
  }

  static uint64_t divide(uint64_t a, uint64_t b, bool is_unsigned, bool remainder) {
    if (is_unsigned) return remainder ? a % b : a / b;
    // INT64_MIN / -1 overflows in C++; negation wraps as the other operators do.
    if (b == ~uint64_t{0}) return remainder ? 0 : -a;
    auto sa = static_cast<int64_t>(a), sb = static_cast<int64_t>(b);
    return static_cast<uint64_t>(remainder ? sa % sb : sa / sb);
  }

  // Amounts of 64 and more shift everything out.
  static uint64_t shift(const Constant& value, uint64_t amount, bool to_left) {
    if (to_left) return amount < 64 ? value.bits << amount : 0;
    if (value.is_unsigned) return amount < 64 ? value.bits >> amount : 0;
    return static_cast<uint64_t>(static_cast<int64_t>(value.bits) >> (amount < 64 ? amount : 63));
  }

  template <typename T>
  static bool compare(std::string_view op, T a, T b) {
    if (op == "==") return a == b;
    if (op == "!=") return a != b;
    if (op == "<") return a < b;
    if (op == "<=") return a <= b;
    if (op == ">") return a > b;
    return a >= b;
  }

  bool apply_float(std::string_view op, Constant& left, const Constant& right) {
    double a = left.number(), b = right.number();
    if (op == "+") {
      left = float64(a + b);
    } else if (op == "-") {
      left = float64(a - b);
    } else if (op == "*") {
      left = float64(a * b);
    } else if (op == "/") {
      if (b == 0) return cursor_.fail("division of a constant by zero");
      left = float64(a / b);
    } else if (op == "&&") {
      left = integer(a != 0 && b != 0);
    } else if (op == "||") {
      left = integer(a != 0 || b != 0);
    } else if (int precedence = precedence_of({TokenKind::kSymbol, false, false, 0, op});
               precedence == 6 || precedence == 7) {
      left = integer(compare(op, a, b));
    } else {
      return cursor_.fail(fmt::format("\"{}\" of a floating-point number", op));
    }
    return true;
  }

  Cursor& cursor_;
  size_t left_;
};

}  // namespace

double Constant::number() const {
  if (!is_float) {
    return is_unsigned ? static_cast<double>(bits)
                       : static_cast<double>(static_cast<int64_t>(bits));
  }
  return is_single ? std::bit_cast<float>(static_cast<uint32_t>(bits))
                   : std::bit_cast<double>(bits);
}

bool begins_constant(const Cursor& cursor) {
  const Token& token = cursor.token();
  switch (token.kind) {
    case TokenKind::kInteger:
    case TokenKind::kFloat:
      return true;
    case TokenKind::kIdentifier:
      return token.text == "WARP_SZ";
    case TokenKind::kWord:
      return token.text[1] >= '0' && token.text[1] <= '9';
    case TokenKind::kSymbol:
      return cursor.is('-') || cursor.is('+') || cursor.is('~') || cursor.is('!') || cursor.is('(');
    default:
      return false;
  }
}

bool parse_constant(Cursor& cursor, size_t max_depth, Constant& value) {
  return Evaluator(cursor, max_depth).ternary(value);
}

}  // namespace cb::ptx
