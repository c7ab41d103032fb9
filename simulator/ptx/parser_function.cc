#include "simulator/ptx/parser_function.h"

#include <fmt/format.h>

#include <algorithm>

namespace cb::ptx {
namespace {

// A function takes its place in the module before its body is parsed, so that it can call itself,
// and a definition takes the place of an earlier declaration. Scopes of the body are kept on stacks
// of Symbols and Labels instead of recursing, and labels are settled at the end.

bool parse_triple(Cursor& cursor, std::string_view what, uint32_t (&triple)[3]) {
  size_t count = 0;
  std::fill(std::begin(triple), std::end(triple), 1);
  do {
    uint64_t value = 0;
    if (count == 3) return cursor.fail(fmt::format("{} has more than three sizes", what));
    if (!cursor.integer(value, UINT32_MAX, what)) return false;
    if (value == 0) return cursor.fail(fmt::format("{} of 0", what));
    triple[count++] = static_cast<uint32_t>(value);
  } while (cursor.accept(','));
  return !cursor.error();
}

bool parse_number(Cursor& cursor, std::string_view what, uint32_t& number) {
  uint64_t value = 0;
  if (!cursor.integer(value, UINT32_MAX, what)) return false;
  number = static_cast<uint32_t>(value);
  return true;
}

// One directive between the parameters and the body.
bool parse_directive(ParserContext& context, Function& function) {
  Cursor& cursor = context.cursor;
  std::string_view word = cursor.token().text;
  uint32_t ignored = 0;
  cursor.advance();
  if (word == ".maxntid") return parse_triple(cursor, word, function.max_threads);
  if (word == ".reqntid") return parse_triple(cursor, word, function.required_threads);
  if (word == ".reqnctapercluster") return parse_triple(cursor, word, function.required_cluster);
  if (word == ".minnctapersm") return parse_number(cursor, word, function.min_blocks_per_sm);
  if (word == ".maxnreg") return parse_number(cursor, word, function.max_registers);
  if (word == ".maxclusterrank") return parse_number(cursor, word, function.max_cluster_blocks);
  if (word == ".pragma") return parse_pragma(context, function.pragmas);
  // Of interest to register allocation only.
  if (word == ".maxnctapersm" || word == ".abi_preserve" || word == ".abi_preserve_control") {
    return parse_number(cursor, word, ignored);
  }
  if (word == ".explicitcluster") {
    function.explicit_cluster = true;
  } else if (word == ".noreturn") {
    function.no_return = true;
  } else {
    return cursor.fail(fmt::format("directive {} of a function is not supported", quoted(word)));
  }
  return !cursor.error();
}

bool same_sizes(const std::vector<Variable>& a, const std::vector<Variable>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Variable& x, const Variable& y) { return x.bytes == y.bytes; });
}

// Gives the function its index: that of an earlier declaration, or a new one.
bool place_function(ParserContext& context, std::string_view name, const Function& function,
                    bool has_body, int32_t& index) {
  Cursor& cursor = context.cursor;
  std::vector<Function>& functions = context.module.functions;
  std::optional<Binding> known = context.symbols.find_global(name);
  if (!known) {
    index = static_cast<int32_t>(functions.size());
    functions.push_back(function);
    context.symbols.declare_global(name, {Binding::Kind::kFunction, index});
    return true;
  }
  if (known->kind != Binding::Kind::kFunction) {
    return cursor.fail(fmt::format("{} is a variable already", quoted(name)));
  }
  index = known->index;
  Function& earlier = functions[index];
  if (has_body && !earlier.is_extern) {
    return cursor.fail(fmt::format("function {} has two bodies", quoted(name)));
  }
  if (earlier.is_entry != function.is_entry ||
      !same_sizes(earlier.parameters, function.parameters) ||
      !same_sizes(earlier.return_values, function.return_values)) {
    return cursor.fail(
        fmt::format("function {} was declared with another signature", quoted(name)));
  }
  earlier.is_weak |= function.is_weak;
  earlier.is_visible |= function.is_visible;
  return true;
}

bool parse_header(ParserContext& context, std::string_view& name, Function& function) {
  Cursor& cursor = context.cursor;
  if (!function.is_entry && cursor.accept('(') &&
      !parse_parameters(context, Binding::Kind::kReturnValue, function.return_values)) {
    return false;
  }
  if (!cursor.identifier(name, "the name of a function")) return false;
  function.name = name;
  if (cursor.accept('(') &&
      !parse_parameters(context, Binding::Kind::kParameter, function.parameters)) {
    return false;
  }
  while (cursor.is(TokenKind::kWord)) {
    if (!parse_directive(context, function)) return false;
  }
  return !cursor.error();
}

}  // namespace

bool parse_function(ParserContext& context, const Linkage& linkage, bool is_entry) {
  Cursor& cursor = context.cursor;
  Function function;
  function.is_entry = is_entry;
  function.is_visible = linkage.is_visible;
  function.is_weak = linkage.is_weak;
  function.is_extern = true;
  std::string_view name;
  int32_t index = -1;
  context.symbols.open_scope();
  if (!parse_header(context, name, function)) return false;
  bool has_body = cursor.is('{');
  if (has_body && linkage.is_extern) {
    return cursor.fail(fmt::format(".extern function {} has a body", quoted(name)));
  }
  if (!place_function(context, name, function, has_body, index)) return false;
  if (has_body) {
    cursor.advance();
    function.is_extern = false;
    if (!BodyParser(context, function).parse()) return false;
    function.is_weak |= context.module.functions[index].is_weak;
    function.is_visible |= context.module.functions[index].is_visible;
    context.module.functions[index] = std::move(function);
  } else if (!cursor.accept(';')) {
    return cursor.unexpected("the body of a function, or \";\"");
  }
  context.symbols.close_scope();
  return true;
}

bool BodyParser::parse() {
  Labels& labels = context_.labels;
  labels.clear();
  labels.open_scope();
  size_t open = 1;
  while (open > 0) {
    if (cursor_.accept('{')) {
      if (open >= context_.limits.nesting) {
        return cursor_.fail(fmt::format("scopes nest deeper than {}", context_.limits.nesting));
      }
      ++open;
      labels.open_scope();
      context_.symbols.open_scope();
    } else if (cursor_.accept('}')) {
      --open;
      labels.close_scope();
      // The outermost scope is that of the parameters, too.
      if (open > 0) context_.symbols.close_scope();
    } else if (!statement()) {
      return false;
    }
  }
  return !cursor_.error() && labels.settle(function_, cursor_);
}

bool BodyParser::statement() {
  if (cursor_.is(TokenKind::kWord)) return directive();
  if (cursor_.is('@')) return guarded_instruction();
  uint32_t line = cursor_.token().line;
  std::string_view name;
  if (!cursor_.identifier(name, "an instruction")) return false;
  if (cursor_.accept(':')) return label(name, line);
  return instruction(name, line, {});
}

bool BodyParser::directive() {
  std::string_view word = cursor_.token().text;
  Space space = space_from_word(word);
  if (cursor_.accept_word(".reg")) return registers();
  if (space != Space::kNone) {
    cursor_.advance();
    return parse_variables(context_, space, {}, &function_);
  }
  if (cursor_.accept_word(".loc")) return parse_location(context_, location_);
  if (cursor_.accept_word(".pragma")) return parse_pragma(context_, function_.pragmas);
  return cursor_.fail(fmt::format("directive {} in a function is not supported", quoted(word)));
}

bool BodyParser::registers() {
  std::string_view word = cursor_.token().text;
  Type type = cursor_.is(TokenKind::kWord) ? type_from_name(word.substr(1)) : Type::kNone;
  if (word == ".v2" || word == ".v4") {
    return cursor_.fail("vector registers are not supported: use one register per element");
  }
  if (type == Type::kNone) return cursor_.unexpected("the type of a register");
  cursor_.advance();
  do {
    std::string_view name;
    bool is_new;
    if (!cursor_.identifier(name, "the name of a register")) return false;
    if (cursor_.accept('<')) {
      uint64_t count = 0;
      if (!cursor_.integer(count, context_.limits.registers_per_function, "register count") ||
          !cursor_.expect('>', "a register count")) {
        return false;
      }
      is_new = context_.symbols.declare_range(name, type, static_cast<uint32_t>(count));
    } else {
      auto index = static_cast<int32_t>(function_.registers.size());
      is_new = context_.symbols.declare(name, {Binding::Kind::kRegister, index});
      function_.registers.push_back({std::string(name), type});
      if (!within_register_limit()) return false;
    }
    if (!is_new) {
      return cursor_.fail(fmt::format("{} is declared in this scope already", quoted(name)));
    }
  } while (cursor_.accept(','));
  return cursor_.expect(';', "a register declaration");
}

bool BodyParser::within_register_limit() {
  if (function_.registers.size() > context_.limits.registers_per_function) {
    return cursor_.fail(fmt::format("function {} has more than {} registers",
                                    quoted(function_.name),
                                    context_.limits.registers_per_function));
  }
  return !cursor_.error();
}

bool BodyParser::label(std::string_view name, uint32_t line) {
  if (cursor_.accept_word(".branchtargets")) return branch_table(name, line);
  if (cursor_.accept_word(".callprototype")) return prototype(name, line);
  if (cursor_.accept_word(".calltargets")) return call_targets(name, line);
  context_.labels.define(name, Labels::Kind::kInstruction,
                         static_cast<uint32_t>(function_.body.size()), line);
  return !cursor_.error();
}

bool BodyParser::branch_table(std::string_view name, uint32_t line) {
  auto table = static_cast<uint32_t>(function_.branch_tables.size());
  context_.labels.define(name, Labels::Kind::kTable, table, line);
  std::vector<uint32_t>& targets = function_.branch_tables.emplace_back();
  do {
    std::string_view target;
    uint32_t target_line = cursor_.token().line;
    if (!cursor_.identifier(target, "a label")) return false;
    context_.labels.refer_from_table(target, table, static_cast<uint32_t>(targets.size()),
                                     target_line);
    targets.push_back(0);
  } while (cursor_.accept(','));
  return cursor_.expect(';', ".branchtargets");
}

bool BodyParser::prototype(std::string_view name, uint32_t line) {
  Function::Prototype prototype;
  std::string_view placeholder;
  // Parameters of a prototype are named "_", or have names that nothing else sees.
  context_.symbols.open_scope();
  if (cursor_.accept('(') &&
      !parse_parameters(context_, Binding::Kind::kReturnValue, prototype.return_values)) {
    return false;
  }
  if (!cursor_.identifier(placeholder, "\"_\" of a .callprototype")) return false;
  if (cursor_.accept('(') &&
      !parse_parameters(context_, Binding::Kind::kParameter, prototype.parameters)) {
    return false;
  }
  context_.symbols.close_scope();
  Function ignored;
  while (cursor_.is(TokenKind::kWord)) {
    if (!parse_directive(context_, ignored)) return false;
  }
  return define_prototype(name, line, std::move(prototype)) &&
         cursor_.expect(';', ".callprototype");
}

bool BodyParser::define_prototype(std::string_view name, uint32_t line,
                                  Function::Prototype prototype) {
  uint32_t index = context_.labels.prototype_count();
  std::string key = context_.labels.add_prototype(name, function_);
  context_.labels.define(name, Labels::Kind::kPrototype, index, line);
  function_.prototypes.emplace(std::move(key), std::move(prototype));
  return !cursor_.error();
}

// The functions that a call may reach: their prototype is that of the first.
bool BodyParser::call_targets(std::string_view name, uint32_t line) {
  Function::Prototype prototype;
  bool is_first = true;
  do {
    std::string_view target;
    if (!cursor_.identifier(target, "a function")) return false;
    std::optional<Binding> binding = context_.symbols.find(target, function_.registers);
    if (!binding || binding->kind != Binding::Kind::kFunction) {
      return cursor_.fail(fmt::format("{} is no function that .func declares", quoted(target)));
    }
    if (is_first) {
      const Function& first = context_.module.functions[static_cast<size_t>(binding->index)];
      prototype = {first.parameters, first.return_values};
    }
    is_first = false;
  } while (cursor_.accept(','));
  return define_prototype(name, line, std::move(prototype)) && cursor_.expect(';', ".calltargets");
}

}  // namespace cb::ptx
