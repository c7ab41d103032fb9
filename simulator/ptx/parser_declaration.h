#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "simulator/ptx/parser_context.h"

namespace cb::ptx {

struct Linkage {
  bool is_extern = false;
  bool is_visible = false;
  bool is_weak = false;
};

/// The space that a word such as ".shared" names, kNone if it names none.
Space space_from_word(std::string_view word);

/// Parses what follows the space of a variable, up to and with the semicolon, and appends the
/// variables to those of `function`, or of the module for .global and .const or without a function.
bool parse_variables(ParserContext& context, Space space, const Linkage& linkage,
                     Function* function);

/// Parses `(.param ..., ...)` after its opening parenthesis, with the closing one, and declares the
/// names in the present scope as `kind`.
bool parse_parameters(ParserContext& context, Binding::Kind kind,
                      std::vector<Variable>& parameters);

/// Parses a constant expression that must be an integer from 0 to `max`.
bool parse_count(ParserContext& context, uint64_t max, std::string_view what, uint64_t& value);

/// Parses `.pragma` after its word, with the semicolon.
bool parse_pragma(ParserContext& context, std::vector<std::string>& pragmas);

}  // namespace cb::ptx
