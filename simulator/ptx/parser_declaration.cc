#include "simulator/ptx/parser_declaration.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <optional>

#include "simulator/ptx/constant.h"
#include "simulator/ptx/initializer.h"

namespace cb::ptx {
namespace {

// A declaration is a head (space, alignment, type, attributes) and names with dimensions and
// initial values: `.global .align 4 .u32 a[2] = {1, 2}, b;`. Parameters are the same with one name
// each. Sizes are checked against overflow here, so that whoever adds them up need not.

constexpr uint64_t kMaxAlign = uint64_t{1} << 20;

// What precedes the names of a declaration, and holds for each of them.
struct Head {
  Type type = Type::kNone;
  uint32_t align = 0;
  unsigned vector_length = 1;
  bool is_managed = false;
};

bool parse_align(ParserContext& context, uint32_t& align) {
  uint64_t value = 0;
  if (!context.cursor.integer(value, kMaxAlign, "alignment")) return false;
  if (!std::has_single_bit(value)) {
    return context.cursor.fail(fmt::format("alignment {} is not a power of two", value));
  }
  align = static_cast<uint32_t>(value);
  return true;
}

bool parse_attribute(Cursor& cursor, Head& head) {
  if (!cursor.expect('(', ".attribute")) return false;
  do {
    if (!cursor.is_word(".managed")) {
      return cursor.fail(fmt::format("attribute {} is not supported (known: .managed)",
                                     quoted(cursor.token().text)));
    }
    cursor.advance();
    head.is_managed = true;
  } while (cursor.accept(','));
  return cursor.expect(')', "the attributes");
}

// `.ptr` says what a kernel's pointer points to; it changes nothing about the parameter itself.
bool skip_pointer_attributes(ParserContext& context) {
  Cursor& cursor = context.cursor;
  if (cursor.is(TokenKind::kWord) && space_from_word(cursor.token().text) != Space::kNone) {
    cursor.advance();
  }
  uint32_t ignored = 0;
  return !cursor.accept_word(".align") || parse_align(context, ignored);
}

bool parse_head(ParserContext& context, Head& head) {
  Cursor& cursor = context.cursor;
  while (cursor.is(TokenKind::kWord)) {
    std::string_view word = cursor.token().text;
    if (word == ".texref" || word == ".samplerref" || word == ".surfref") {
      return cursor.fail(fmt::format("{} variables are not supported", word));
    }
    Type type = type_from_name(word.substr(1));
    bool is_vector = word == ".v2" || word == ".v4" || word == ".v8";
    if (type == Type::kNone && !is_vector && word != ".align" && word != ".attribute" &&
        word != ".ptr") {
      return cursor.unexpected("the type of a variable");
    }
    cursor.advance();
    if (word == ".align") {
      if (!parse_align(context, head.align)) return false;
    } else if (word == ".attribute") {
      if (!parse_attribute(cursor, head)) return false;
    } else if (word == ".ptr") {
      if (!skip_pointer_attributes(context)) return false;
    } else if (is_vector) {
      head.vector_length = static_cast<unsigned>(word[2] - '0');
    } else {
      head.type = type;
    }
  }
  if (head.type == Type::kNone) return cursor.unexpected("the type of a variable");
  if (bytes_of(head.type) == 0) {
    return cursor.fail(fmt::format("a variable of type .{} has no size", name_of(head.type)));
  }
  return true;
}

// Dimensions of an array, outermost first; an empty first one is left 0.
bool parse_dimensions(ParserContext& context, std::vector<uint64_t>& dimensions) {
  Cursor& cursor = context.cursor;
  while (cursor.accept('[')) {
    if (dimensions.size() >= context.limits.nesting) return cursor.fail("too many dimensions");
    uint64_t count = 0;
    if (cursor.is(']') && dimensions.empty()) {
      cursor.advance();
      dimensions.push_back(0);
      continue;
    }
    if (!parse_count(context, kMaxVariableBytes, "array size", count)) return false;
    if (!cursor.expect(']', "an array size")) return false;
    dimensions.push_back(count);
  }
  return !cursor.error();
}

// One name of a declaration. `name` is a view of the text, as Symbols needs it.
struct Declarator {
  std::string_view name;
  std::vector<uint64_t> dimensions;  ///< the length of vectors included, as the innermost
  Variable variable;
};

bool parse_declarator(ParserContext& context, const Head& head, Declarator& declarator) {
  Cursor& cursor = context.cursor;
  auto& [name, dimensions, variable] = declarator;
  if (!cursor.identifier(name, "the name of a variable")) return false;
  if (cursor.is('<')) {
    return cursor.fail(
        fmt::format("{}<N>: numbered variables are supported in .reg only", quoted(name)));
  }
  if (!parse_dimensions(context, dimensions)) return false;
  variable.name = name;
  variable.type = head.type;
  variable.is_managed = head.is_managed;
  uint64_t element_bytes = uint64_t{bytes_of(head.type)} * head.vector_length;
  variable.align = head.align != 0 ? head.align : static_cast<uint32_t>(element_bytes);
  unsigned __int128 bytes = element_bytes;
  for (uint64_t count : dimensions) {
    bytes *= std::max<uint64_t>(count, 1);
    if (bytes > kMaxVariableBytes) {
      return cursor.fail(
          fmt::format("variable {} is larger than {} bytes", quoted(name), kMaxVariableBytes));
    }
  }
  bool is_empty = std::find(dimensions.begin(), dimensions.end(), 0) != dimensions.end();
  variable.bytes = is_empty ? 0 : static_cast<uint64_t>(bytes);
  if (head.vector_length > 1) dimensions.push_back(head.vector_length);
  return true;
}

// An earlier `.extern` declaration gives way to a definition and keeps its index.
bool merge_with_extern(ParserContext& context, std::string_view name, Variable& variable) {
  std::optional<Binding> known = context.symbols.find_global(name);
  if (!known || known->kind != Binding::Kind::kModuleVariable) return false;
  Variable& earlier = context.module.variables[known->index];
  if (earlier.space != variable.space) return false;
  if (!earlier.is_extern && !variable.is_extern) return false;
  if (earlier.is_extern) earlier = std::move(variable);
  return true;
}

bool add_variable(ParserContext& context, std::string_view name, Variable variable,
                  Function* function) {
  bool is_global = variable.space == Space::kGlobal || variable.space == Space::kConst;
  bool to_module = function == nullptr || is_global;
  if (function == nullptr && merge_with_extern(context, name, variable)) return true;
  std::vector<Variable>& variables = to_module ? context.module.variables : function->variables;
  Binding binding{to_module ? Binding::Kind::kModuleVariable : Binding::Kind::kFunctionVariable,
                  static_cast<int32_t>(variables.size())};
  if (!context.symbols.declare(name, binding)) {
    return context.cursor.fail(fmt::format("{} is declared in this scope already", quoted(name)));
  }
  variables.push_back(std::move(variable));
  return !context.cursor.error();
}

}  // namespace

Space space_from_word(std::string_view word) {
  if (word == ".reg") return Space::kReg;
  if (word == ".const") return Space::kConst;
  if (word == ".global") return Space::kGlobal;
  if (word == ".local") return Space::kLocal;
  if (word == ".param") return Space::kParam;
  if (word == ".shared") return Space::kShared;
  return Space::kNone;
}

bool parse_count(ParserContext& context, uint64_t max, std::string_view what, uint64_t& value) {
  Constant constant;
  uint32_t line = context.cursor.token().line;
  if (!parse_constant(context.cursor, context.limits.nesting, constant)) return false;
  bool is_negative = !constant.is_unsigned && (constant.bits >> 63) != 0;
  if (constant.is_float || is_negative || constant.bits > max) {
    return context.cursor.fail_at(line, fmt::format("{} must be from 0 to {}", what, max));
  }
  value = constant.bits;
  return true;
}

bool parse_variables(ParserContext& context, Space space, const Linkage& linkage,
                     Function* function) {
  Cursor& cursor = context.cursor;
  Head head;
  if (!parse_head(context, head)) return false;
  do {
    Declarator declarator;
    if (!parse_declarator(context, head, declarator)) return false;
    Variable& variable = declarator.variable;
    variable.space = space;
    variable.is_extern = linkage.is_extern;
    variable.is_visible = linkage.is_visible;
    variable.is_weak = linkage.is_weak;
    if (cursor.is('=')) {
      if (linkage.is_extern || (space != Space::kGlobal && space != Space::kConst)) {
        return cursor.fail(
            fmt::format("{} cannot have an initial value: only .global and .const "
                        "variables that are not .extern can",
                        quoted(declarator.name)));
      }
      cursor.advance();
      if (!parse_initializer(context, declarator.dimensions, variable)) return false;
    }
    if (variable.bytes == 0 && !linkage.is_extern) {
      return cursor.fail(
          fmt::format("{} needs a size, since it is not .extern", quoted(declarator.name)));
    }
    if (!add_variable(context, declarator.name, std::move(variable), function)) return false;
  } while (cursor.accept(','));
  return cursor.expect(';', "a declaration");
}

bool parse_parameters(ParserContext& context, Binding::Kind kind,
                      std::vector<Variable>& parameters) {
  Cursor& cursor = context.cursor;
  if (cursor.accept(')')) return true;
  do {
    if (cursor.is_word(".reg")) {
      return cursor.fail(".reg parameters are not supported: pass .param variables");
    }
    if (!cursor.accept_word(".param")) return cursor.unexpected("\".param\"");
    Head head;
    Declarator declarator;
    if (!parse_head(context, head) || !parse_declarator(context, head, declarator)) return false;
    declarator.variable.space = Space::kParam;
    if (declarator.variable.bytes == 0) {
      return cursor.fail(fmt::format("parameter {} needs a size", quoted(declarator.name)));
    }
    Binding binding{kind, static_cast<int32_t>(parameters.size())};
    if (declarator.name != "_" && !context.symbols.declare(declarator.name, binding)) {
      return cursor.fail(fmt::format("two parameters are named {}", quoted(declarator.name)));
    }
    parameters.push_back(std::move(declarator.variable));
  } while (cursor.accept(','));
  return cursor.expect(')', "the parameters");
}

bool parse_pragma(ParserContext& context, std::vector<std::string>& pragmas) {
  do {
    std::string_view text;
    if (!context.cursor.string(text, "the text of a .pragma")) return false;
    pragmas.emplace_back(text);
  } while (context.cursor.accept(','));
  return context.cursor.expect(';', ".pragma");
}

}  // namespace cb::ptx
