#pragma once

#include <cstdint>
#include <map>
#include <tuple>
#include <utility>

#include "simulator/ptx/cursor.h"
#include "simulator/ptx/labels.h"
#include "simulator/ptx/module.h"
#include "simulator/ptx/symbols.h"

namespace cb::ptx {

/// Larger than any device memory, and small enough that sums of sizes cannot overflow.
inline constexpr uint64_t kMaxVariableBytes = uint64_t{1} << 47;

/// Turns `.loc` directives into Module::locations, each combination once.
class SourceMap {
 public:
  struct Position {
    uint32_t file = 0, line = 0, column = 0;
    bool operator<(const Position& other) const {
      return std::tie(file, line, column) < std::tie(other.file, other.line, other.column);
    }
  };

  int32_t add(Module& module, const Position& position) { return add(module, position, -1); }
  /// `site` is the position of an earlier directive: the latest at that place is meant, which knows
  /// in turn where it was inlined.
  int32_t add_inlined(Module& module, const Position& position, const Position& site);
  /// The largest file index used, 0 if none.
  uint32_t largest_file() const { return largest_file_; }

 private:
  int32_t add(Module& module, const Position& position, int32_t inlined_at);

  std::map<std::pair<Position, int32_t>, int32_t> known_;
  std::map<Position, int32_t> latest_;
  uint32_t largest_file_ = 0;
};

/// What the functions that parse parts of a module share.
struct ParserContext {
  ParserContext(std::string_view text, const ParseLimits& parse_limits)
      : limits(parse_limits), cursor(text), labels(symbols) {}

  const ParseLimits& limits;
  Cursor cursor;
  Symbols symbols;
  Labels labels;
  SourceMap sources;
  Module module;
  size_t instructions = 0;
  size_t operands = 0;
  size_t initial_bytes = 0;
};

/// Parses `.loc` after its word. `location` becomes an index into Module::locations.
bool parse_location(ParserContext& context, int32_t& location);

}  // namespace cb::ptx
