#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/ptx/cursor.h"

namespace cb::ptx {

/// The value of a constant expression (ISA 9.0, section 4.5): a 64-bit integer, signed unless said
/// otherwise, or a float.
struct Constant {
  bool is_float = false;
  bool is_single = false;  ///< of a float: `bits` is a 32-bit pattern, else a 64-bit one
  bool is_unsigned = false;
  uint64_t bits = 0;

  /// The float as a number.
  double number() const;
  bool is_zero() const { return is_float ? number() == 0 : bits == 0; }
};

/// Whether the token can begin a constant expression.
bool begins_constant(const Cursor& cursor);

/// Parses a constant expression. False, with the error in `cursor`, if there is none, if it divides
/// by zero or nests deeper than `max_depth`.
bool parse_constant(Cursor& cursor, size_t max_depth, Constant& value);

}  // namespace cb::ptx
