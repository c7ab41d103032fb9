#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "simulator/ptx/module.h"
#include "simulator/ptx/parser_context.h"
#include "simulator/ptx/parser_declaration.h"
#include "simulator/ptx/parser_function.h"

namespace cb::ptx {
namespace {

// The module level of a recursive-descent parser. Every function returns false once the cursor has
// an error, which is reported once, by parse(). Functions and variables are added to the module as
// they are met; addresses in initial values and the files of .loc may come later in the text and
// are checked at the end.

constexpr uint64_t kMaxFiles = 1 << 16;

bool parse_version(ParserContext& context) {
  Cursor& cursor = context.cursor;
  Module& module = context.module;
  if (!cursor.accept_word(".version")) {
    return cursor.unexpected("\".version\" at the start of the module");
  }
  std::string_view text = cursor.token().text;
  const char* end = text.data() + text.size();
  auto major = std::from_chars(text.data(), end, module.version_major);
  bool has_dot = major.ec == std::errc{} && major.ptr != end && *major.ptr == '.';
  auto minor = std::from_chars(has_dot ? major.ptr + 1 : end, end, module.version_minor);
  if (!cursor.is(TokenKind::kFloat) || minor.ec != std::errc{} || minor.ptr != end) {
    return cursor.unexpected("a version such as 9.0");
  }
  if (std::pair(module.version_major, module.version_minor) >
      std::pair(kNewestVersion[0], kNewestVersion[1])) {
    return cursor.fail(
        fmt::format("PTX ISA {} is not supported: the newest is {}.{}. Compile with "
                    "nvcc 13.0 or older",
                    text, kNewestVersion[0], kNewestVersion[1]));
  }
  cursor.advance();
  return true;
}

bool parse_target(ParserContext& context) {
  Cursor& cursor = context.cursor;
  if (!cursor.accept_word(".target")) return cursor.unexpected("\".target\" after the version");
  std::string_view target;
  if (!cursor.identifier(target, "a target such as sm_90")) return false;
  if (!target.starts_with("sm_")) {
    return cursor.fail(fmt::format("target {} is not of the form sm_90", quoted(target)));
  }
  context.module.target = target;
  while (cursor.accept(',')) {
    std::string_view option;
    if (!cursor.identifier(option, "an option of the target")) return false;
    if (option != "debug" && option != "texmode_unified" && option != "texmode_independent") {
      return cursor.fail(fmt::format("target option {} is not supported", quoted(option)));
    }
  }
  return !cursor.error();
}

bool parse_address_size(Cursor& cursor) {
  uint64_t bits = 0;
  if (!cursor.integer(bits, 64, "address size")) return false;
  return bits == 64 || cursor.fail(fmt::format(".address_size {}: only 64 is supported", bits));
}

bool parse_file(ParserContext& context) {
  Cursor& cursor = context.cursor;
  uint64_t index = 0, ignored = 0;
  std::string_view name;
  if (!cursor.integer(index, kMaxFiles, "file index")) return false;
  if (!cursor.string(name, "the name of a file")) return false;
  // Time stamp and size of the file.
  while (cursor.accept(',')) {
    if (!cursor.integer(ignored, UINT64_MAX, "time stamp or size of a file")) return false;
  }
  std::vector<std::string>& files = context.module.files;
  if (files.size() <= index) files.resize(index + 1);
  files[index] = name;
  return !cursor.error();
}

// Debug information: data and labels in braces.
bool skip_section(Cursor& cursor) {
  if (!cursor.is(TokenKind::kWord)) return cursor.unexpected("the name of a section");
  cursor.advance();
  if (!cursor.expect('{', "the name of a section")) return false;
  while (!cursor.is('}')) {
    if (cursor.is(TokenKind::kEnd)) return cursor.unexpected("\"}\" at the end of a section");
    cursor.advance();
  }
  cursor.advance();
  return !cursor.error();
}

/// `.alias name, function;`: both are declared, and the function has a body.
bool parse_alias(ParserContext& context) {
  Cursor& cursor = context.cursor;
  int32_t indices[2] = {-1, -1};
  std::vector<Register> no_registers;
  for (int32_t& index : indices) {
    if (&index != indices && !cursor.expect(',', "the name of an alias")) return false;
    std::string_view name;
    if (!cursor.identifier(name, "a function")) return false;
    std::optional<Binding> binding = context.symbols.find(name, no_registers);
    if (!binding || binding->kind != Binding::Kind::kFunction) {
      return cursor.fail(fmt::format("{} is no function that .func declares", quoted(name)));
    }
    index = binding->index;
  }
  Function& alias = context.module.functions[static_cast<size_t>(indices[0])];
  const Function& aliasee = context.module.functions[static_cast<size_t>(indices[1])];
  if (!alias.is_extern || alias.is_entry) {
    return cursor.fail(fmt::format("{} is a function of its own", quoted(alias.name)));
  }
  if (aliasee.is_extern || aliasee.is_entry) {
    return cursor.fail(fmt::format("{} has no body", quoted(aliasee.name)));
  }
  alias.alias_of = aliasee.alias_of >= 0 ? aliasee.alias_of : indices[1];
  alias.is_extern = false;
  return cursor.expect(';', ".alias");
}

bool parse_linked(ParserContext& context) {
  Cursor& cursor = context.cursor;
  if (cursor.accept_word(".alias")) return parse_alias(context);
  Linkage linkage;
  for (;;) {
    if (cursor.accept_word(".extern")) {
      linkage.is_extern = true;
    } else if (cursor.accept_word(".visible")) {
      linkage.is_visible = true;
    } else if (cursor.accept_word(".weak")) {
      linkage.is_weak = true;
    } else {
      break;
    }
  }
  if (cursor.accept_word(".entry")) return parse_function(context, linkage, true);
  if (cursor.accept_word(".func")) return parse_function(context, linkage, false);
  std::string_view word = cursor.token().text;
  Space space = cursor.is(TokenKind::kWord) ? space_from_word(word) : Space::kNone;
  if (space == Space::kGlobal || space == Space::kConst || space == Space::kShared) {
    cursor.advance();
    return parse_variables(context, space, linkage, nullptr);
  }
  if (space != Space::kNone) {
    return cursor.fail(fmt::format("{} variables outside a function are not supported", word));
  }
  return cursor.is(TokenKind::kWord)
             ? cursor.fail(fmt::format("directive {} is not supported", quoted(word)))
             : cursor.unexpected("a directive");
}

bool parse_directive(ParserContext& context) {
  Cursor& cursor = context.cursor;
  if (cursor.accept_word(".address_size")) return parse_address_size(cursor);
  if (cursor.accept_word(".file")) return parse_file(context);
  if (cursor.accept_word(".section")) return skip_section(cursor);
  if (cursor.accept_word(".pragma")) {
    std::vector<std::string> ignored;
    return parse_pragma(context, ignored);
  }
  return parse_linked(context);
}

bool check_references(ParserContext& context) {
  Cursor& cursor = context.cursor;
  const Module& module = context.module;
  for (const Variable& variable : module.variables) {
    for (const Variable::Fixup& fixup : variable.fixups) {
      if (!context.symbols.find_global(fixup.symbol)) {
        return cursor.fail(
            fmt::format("the initial value of {} needs the address of {}, which the "
                        "module does not have",
                        quoted(variable.name), quoted(fixup.symbol)));
      }
    }
  }
  if (context.sources.largest_file() >= std::max<size_t>(module.files.size(), 1)) {
    return cursor.fail(
        fmt::format(".loc names file {}, which no .file declares", context.sources.largest_file()));
  }
  return true;
}

bool parse_module(ParserContext& context) {
  context.module.files.resize(1);
  if (!parse_version(context) || !parse_target(context)) return false;
  while (!context.cursor.is(TokenKind::kEnd)) {
    if (!parse_directive(context)) return false;
  }
  return !context.cursor.error() && check_references(context);
}

}  // namespace

Result<Module> parse(std::string_view text, const ParseLimits& limits) {
  if (text.size() > limits.text_bytes) {
    return failure(ErrorCode::kConfig, fmt::format("ptx:1: the text has {} bytes, the limit is {}",
                                                   text.size(), limits.text_bytes));
  }
  ParserContext context(text, limits);
  if (!parse_module(context)) return failure(ErrorCode::kConfig, *context.cursor.error());
  return std::move(context.module);
}

}  // namespace cb::ptx
