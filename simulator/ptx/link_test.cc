#include "simulator/ptx/link.h"

#include <fmt/format.h>

#include "simulator/ptx/test_text.h"

namespace cb::ptx {
namespace {

using ::testing::HasSubstr;

Module module_of(const std::string& text) { return value_or_throw(parse_text(text)); }

std::string message_of(std::vector<Module> modules) { return error_of(link(std::move(modules))); }

/// The callee of the only call of a function.
const Function& callee_of(const Module& module, const std::string& name) {
  for (const Instruction& instruction : module.find_function(name)->body) {
    if (instruction.opcode != "call") continue;
    return module.functions[static_cast<size_t>(instruction.operands[1].symbol_index)];
  }
  throw Error(ErrorCode::kConfig, "no call");
}

std::string caller(const std::string& name, const std::string& callee,
                   const std::string& declaration) {
  return fmt::format("{} .visible .entry {}() {{ call {}; ret; }}\n", declaration, name, callee);
}

TEST(Link, ADeclarationBecomesTheDefinitionOfAnotherModule) {
  Module module = value_or_throw(link({module_of(caller("kernel", "f", ".extern .func f();")),
                                       module_of(".visible .func f() { trap; ret; }")}));
  EXPECT_EQ(unresolved(module), "");
  EXPECT_FALSE(callee_of(module, "kernel").is_extern);
  EXPECT_EQ(callee_of(module, "kernel").body.front().opcode, "trap");
}

TEST(Link, AliasesOfOtherModulesAreDefinitions) {
  Module module = value_or_throw(
      link({module_of(caller("kernel", "g", ".extern .func g();")),
            module_of(".visible .func e() { exit; ret; }\n.visible .func f() { trap; ret; }\n"
                      ".visible .func g();\n.alias g, f;")}));
  EXPECT_EQ(unresolved(module), "");
  int32_t aliasee = callee_of(module, "kernel").alias_of;
  ASSERT_GE(aliasee, 0);
  EXPECT_EQ(module.functions[static_cast<size_t>(aliasee)].name, "f");
}

TEST(Link, TheOrderOfModulesDoesNotMatter) {
  Module module = value_or_throw(link({module_of(".visible .func f() { trap; ret; }"),
                                       module_of(caller("kernel", "f", ".extern .func f();"))}));
  EXPECT_EQ(callee_of(module, "kernel").body.front().opcode, "trap");
}

TEST(Link, WhatIsNotVisibleBelongsToItsModule) {
  auto text = [](int number) {
    return fmt::format(
        ".global .u32 hidden = {0};\n"
        ".visible .global .u64 place{0} = hidden;\n"
        ".func f() {{ {1}; ret; }}\n{2}",
        number, number == 1 ? "trap" : "exit", caller(fmt::format("kernel{}", number), "f", ""));
  };
  Module module = value_or_throw(link({module_of(text(1)), module_of(text(2))}));
  EXPECT_EQ(callee_of(module, "kernel1").body.front().opcode, "trap");
  EXPECT_EQ(callee_of(module, "kernel2").body.front().opcode, "exit");
  for (int number : {1, 2}) {
    const Variable* place = module.find_variable(fmt::format("place{}", number));
    ASSERT_NE(place, nullptr);
    const Variable* hidden = module.find_variable(place->fixups.at(0).symbol);
    ASSERT_NE(hidden, nullptr);
    EXPECT_EQ(hidden->initial.at(0), number);
  }
}

TEST(Link, AHiddenNameGivesWayToAVisibleOneOfALaterModule) {
  Module module =
      value_or_throw(link({module_of(".global .u32 x = 1; .visible .entry k() { .reg .b32 %r<2>; "
                                     "ld.global.u32 %r1, [x]; ret; }"),
                           module_of(".visible .global .u32 x = 2;")}));
  EXPECT_EQ(module.find_variable("x")->initial.at(0), 2);
  const Instruction& load = module.find_function("k")->body.front();
  auto index = static_cast<size_t>(load.operands[1].symbol_index);
  EXPECT_EQ(module.variables[index].initial.at(0), 1);
}

TEST(Link, AStrongDefinitionReplacesAWeakOne) {
  for (bool strong_first : {false, true}) {
    Module weak = module_of(".weak .func f() { exit; }" + caller("k1", "f", ""));
    Module strong = module_of(".visible .func f() { trap; ret; }");
    std::vector<Module> modules;
    modules.push_back(strong_first ? strong : weak);
    modules.push_back(strong_first ? weak : strong);
    Module module = value_or_throw(link(std::move(modules)));
    EXPECT_EQ(callee_of(module, "k1").body.front().opcode, "trap");
  }
  Module two = value_or_throw(
      link({module_of(".weak .func f() { exit; }"), module_of(".weak .func f() { trap; }")}));
  EXPECT_EQ(two.find_function("f")->body.front().opcode, "exit");
}

TEST(Link, TwoDefinitionsAndMismatchesAreRefused) {
  Module f = module_of(".visible .func f() { ret; }");
  EXPECT_THAT(message_of({f, f}), HasSubstr("\"f\" is defined twice"));
  EXPECT_THAT(message_of({f, module_of(".visible .func f(.param .b32 a) { ret; }")}),
              HasSubstr("\"f\" is declared with another signature"));
  EXPECT_THAT(message_of({f, module_of(".visible .global .u32 f;")}),
              HasSubstr("\"f\" is a function and a variable"));
  EXPECT_THAT(
      message_of({module_of(".visible .global .u32 v;"), module_of(".extern .global .u64 v;")}),
      HasSubstr("\"v\" is declared with another size"));
  EXPECT_THAT(
      message_of({module_of(".visible .global .u32 v;"), module_of(".extern .const .u32 v;")}),
      HasSubstr("\"v\" is declared in another state space"));
}

TEST(Link, WhatNobodyDefinesIsNamedWithItsLine) {
  EXPECT_EQ(unresolved(module_of(caller("k", "f", ".extern .func f();"))),
            "ptx:4: function \"f\" is not defined");
  EXPECT_EQ(unresolved(module_of(".extern .global .u32 v;\n.entry k() { .reg .b32 %r<2>; "
                                 "ld.global.u32 %r1, [v]; }")),
            "ptx:5: variable \"v\" is not defined");
  EXPECT_THAT(unresolved(module_of(".extern .global .u32 v; .global .u64 p = v;")),
              HasSubstr("needs \"v\", which is not defined"));
  // What the code does not use, dynamic shared memory, and what the system provides.
  EXPECT_EQ(unresolved(module_of(".extern .func f(); .extern .global .u32 v;")), "");
  EXPECT_EQ(unresolved(module_of(".extern .shared .b8 s[]; .entry k() { .reg .b32 %r<2>; "
                                 "ld.shared.u32 %r1, [s]; }")),
            "");
  EXPECT_EQ(unresolved(module_of(caller("k", "__assertfail", ".extern .func __assertfail();"))),
            "");
}

TEST(Link, LinesOfSourcesStayWithTheirFiles) {
  auto text = [](int number) {
    return fmt::format(".visible .entry k{0}() {{ .loc 1 {0} 0\n ret; }}\n.file 1 \"file{0}.cu\"\n",
                       number);
  };
  Module module = value_or_throw(link({module_of(text(1)), module_of(text(2))}));
  for (int number : {1, 2}) {
    const Function* kernel = module.find_function(fmt::format("k{}", number));
    const Location& location =
        module.locations.at(static_cast<size_t>(kernel->body.front().location));
    EXPECT_EQ(location.line, number);
    EXPECT_EQ(module.files.at(location.file), fmt::format("file{}.cu", number));
  }
}

}  // namespace
}  // namespace cb::ptx
