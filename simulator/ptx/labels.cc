#include "simulator/ptx/labels.h"

#include <fmt/format.h>

#include <algorithm>

namespace cb::ptx {
namespace {

const char* describe(Labels::Kind kind) {
  switch (kind) {
    case Labels::Kind::kInstruction:
      return "a label of an instruction";
    case Labels::Kind::kTable:
      return "a .branchtargets list";
    case Labels::Kind::kPrototype:
      return "a .callprototype";
  }
  return "";
}

}  // namespace

void Labels::clear() {
  first_definition_.clear();
  open_scopes_.clear();
  definitions_.clear();
  references_.clear();
  events_.clear();
  prototype_keys_.clear();
}

void Labels::open_scope() {
  auto scope = static_cast<int32_t>(first_definition_.size());
  first_definition_.push_back(-1);
  open_scopes_.push_back(scope);
  events_.push_back({Event::Kind::kOpen, scope});
}

void Labels::close_scope() {
  int32_t scope = open_scopes_.back();
  open_scopes_.pop_back();
  bool is_empty = events_.back().kind == Event::Kind::kOpen && first_definition_[scope] < 0;
  if (is_empty) {
    events_.pop_back();
    first_definition_.pop_back();
  } else {
    events_.push_back({Event::Kind::kClose, scope});
  }
}

void Labels::define(std::string_view name, Kind kind, uint32_t index, uint32_t line) {
  int32_t scope = open_scopes_.back();
  definitions_.push_back(
      {name, symbols_.intern(name), kind, index, line, first_definition_[scope], -1, scope});
  first_definition_[scope] = static_cast<int32_t>(definitions_.size() - 1);
}

void Labels::refer(std::string_view name, Kind kind, uint32_t instruction, uint32_t operand,
                   uint32_t line) {
  events_.push_back({Event::Kind::kReference, static_cast<int32_t>(references_.size())});
  references_.push_back({name, symbols_.intern(name), kind, false, instruction, operand, line});
}

void Labels::refer_from_table(std::string_view name, uint32_t table, uint32_t position,
                              uint32_t line) {
  events_.push_back({Event::Kind::kReference, static_cast<int32_t>(references_.size())});
  references_.push_back(
      {name, symbols_.intern(name), Kind::kInstruction, true, table, position, line});
}

std::string Labels::add_prototype(std::string_view name, const Function& function) {
  std::string key(name);
  // '#' is in no PTX name.
  if (function.prototypes.contains(key)) key += fmt::format("#{}", prototype_keys_.size());
  prototype_keys_.push_back(key);
  return key;
}

bool Labels::open_in_replay(int32_t scope, Cursor& cursor) {
  for (int32_t i = first_definition_[scope]; i >= 0; i = definitions_[i].next) {
    Definition& definition = definitions_[i];
    int32_t& present = meaning_[definition.id];
    if (present >= 0 && definitions_[present].scope == scope) {
      // Definitions of a scope are chained last to first.
      return cursor.fail_at(definitions_[present].line,
                            fmt::format("label {} is defined on line {} already",
                                        quoted(definition.name), definition.line));
    }
    definition.outer = present;
    present = i;
  }
  return true;
}

bool Labels::settle(Function& function, Cursor& cursor) {
  Symbols::Name highest = 0;
  for (const Definition& definition : definitions_) highest = std::max(highest, definition.id);
  for (const Reference& reference : references_) highest = std::max(highest, reference.id);
  if (meaning_.size() <= highest) meaning_.resize(size_t{highest} + 1, -1);
  for (const Event& event : events_) {
    if (event.kind == Event::Kind::kOpen) {
      if (!open_in_replay(event.index, cursor)) return false;
    } else if (event.kind == Event::Kind::kClose) {
      for (int32_t i = first_definition_[event.index]; i >= 0; i = definitions_[i].next) {
        meaning_[definitions_[i].id] = definitions_[i].outer;
      }
    } else {
      if (!write(references_[event.index], function, cursor)) return false;
    }
  }
  return true;
}

bool Labels::write(const Reference& reference, Function& function, Cursor& cursor) const {
  int32_t meaning = meaning_[reference.id];
  if (meaning < 0) {
    return cursor.fail_at(reference.line,
                          fmt::format("unknown label {} in function {}: it must be defined in the "
                                      "same scope or around it",
                                      quoted(reference.name), quoted(function.name)));
  }
  const Definition& definition = definitions_[meaning];
  if (definition.kind != reference.kind) {
    return cursor.fail_at(reference.line,
                          fmt::format("{} is {}, expected {}", quoted(reference.name),
                                      describe(definition.kind), describe(reference.kind)));
  }
  if (reference.from_table) {
    function.branch_tables[reference.owner][reference.position] = definition.index;
    return true;
  }
  Operand& operand = function.body[reference.owner].operands[reference.position];
  if (reference.kind == Kind::kPrototype) {
    operand.name = prototype_keys_[definition.index];
  } else {
    operand.bits = definition.index;
  }
  return true;
}

}  // namespace cb::ptx
