#pragma once

#include <cstdint>
#include <vector>

#include "simulator/ptx/parser_context.h"

namespace cb::ptx {

/// Parses what follows the `=` of a variable: a value, or values in braces nested like the
/// dimensions, outermost first. Fills `variable.initial` and `variable.fixups`; an outermost
/// dimension of 0 takes its size, and `variable.bytes`, from the number of values.
bool parse_initializer(ParserContext& context, const std::vector<uint64_t>& dimensions,
                       Variable& variable);

}  // namespace cb::ptx
