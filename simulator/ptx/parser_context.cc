#include "simulator/ptx/parser_context.h"

#include <algorithm>

namespace cb::ptx {
namespace {

bool parse_position(Cursor& cursor, SourceMap::Position& position) {
  uint64_t file = 0, line = 0, column = 0;
  if (!cursor.integer(file, UINT32_MAX, "file of .loc")) return false;
  if (!cursor.integer(line, UINT32_MAX, "line of .loc")) return false;
  if (!cursor.integer(column, UINT32_MAX, "column of .loc")) return false;
  position = {static_cast<uint32_t>(file), static_cast<uint32_t>(line),
              static_cast<uint32_t>(column)};
  return true;
}

bool accept_name(Cursor& cursor, std::string_view name) {
  if (!cursor.is(TokenKind::kIdentifier) || cursor.token().text != name) return false;
  cursor.advance();
  return true;
}

}  // namespace

int32_t SourceMap::add(Module& module, const Position& position, int32_t inlined_at) {
  auto [place, is_new] =
      known_.try_emplace({position, inlined_at}, static_cast<int32_t>(module.locations.size()));
  if (is_new) module.locations.push_back({position.file, position.line, inlined_at});
  largest_file_ = std::max(largest_file_, position.file);
  latest_[position] = place->second;
  return place->second;
}

int32_t SourceMap::add_inlined(Module& module, const Position& position, const Position& site) {
  auto latest = latest_.find(site);
  int32_t inlined_at = latest != latest_.end() ? latest->second : add(module, site);
  return add(module, position, inlined_at);
}

bool parse_location(ParserContext& context, int32_t& location) {
  Cursor& cursor = context.cursor;
  SourceMap::Position position, site;
  bool is_inlined = false;
  if (!parse_position(cursor, position)) return false;
  while (cursor.accept(',')) {
    if (accept_name(cursor, "function_name")) {
      std::string_view label;
      uint64_t offset = 0;
      if (!cursor.identifier(label, "the label of a function name")) return false;
      if (cursor.accept('+') && !cursor.integer(offset, UINT32_MAX, "offset of a function name")) {
        return false;
      }
    } else if (accept_name(cursor, "inlined_at")) {
      if (!parse_position(cursor, site)) return false;
      is_inlined = true;
    } else {
      return cursor.unexpected("function_name or inlined_at");
    }
  }
  if (cursor.error()) return false;
  location = is_inlined ? context.sources.add_inlined(context.module, position, site)
                        : context.sources.add(context.module, position);
  return true;
}

}  // namespace cb::ptx
