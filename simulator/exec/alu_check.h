#pragma once

// Checks a handler against a model of one lane: in every representation of its operands, with all
// lanes, some lanes, and ended lanes, and with destinations that are also sources.

#include <functional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "simulator/exec/alu_rig.h"

namespace cb::sim {

/// What values a source gets: random ones, mixed with the edge cases of an interpretation.
enum class Fill : uint8_t {
  kByType,  ///< as the operand's PTX type says
  kInteger,
  kSmall,  ///< mostly 0 to 70: shift amounts, positions, lengths
  kF16,    ///< 16-bit patterns, repeated where the operand is wider
  kBf16,
  kF32,
  kF64,
};

/// `in`: the sources in the order of the text, zero-extended, predicates with `!` applied; then
/// the carry if it is read. `out`: the destinations likewise.
using LaneModel = std::function<void(const uint64_t* in, uint64_t* out)>;

struct AluCase {
  std::string text;
  LaneModel model;
  std::vector<Fill> fills = {};
  /// For results that may differ from the model's: (in, expected, actual) -> acceptable. All
  /// representations must still agree.
  std::function<bool(const uint64_t*, uint64_t, uint64_t)> accepts = {};
  int trials = 48;
};

/// Reports at most one failure of the case.
void check_alu(const AluCase& test);

/// What `check_alu` ran in this process: handlers with their parameter.
using CheckedHandler = std::pair<OpFn, uint8_t>;
const std::set<CheckedHandler>& checked_handlers();
CheckedHandler checked_handler(const AluSpec& spec);
/// For tests that compare without `check_alu`, which holds 64 bits a value.
void note_checked(const AluSpec& spec);

/// Shorthand for a case whose model is a function from the sources to one destination.
inline LaneModel returns(std::function<uint64_t(const uint64_t*)> value) {
  return [value = std::move(value)](const uint64_t* in, uint64_t* out) { out[0] = value(in); };
}

}  // namespace cb::sim
