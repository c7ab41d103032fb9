#include "simulator/ptx/test_text.h"

namespace cb::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

Variable variable(const std::string& text) {
  Result<Module> module = parse_text(text);
  if (!module) {
    ADD_FAILURE() << module.error().message() << "\nin: " << text;
    return {};
  }
  return module->variables.back();
}

std::string text_error(const std::string& text) { return error_of(parse_text(text)); }

TEST(Module, HasVersionAndTarget) {
  Result<Module> module = parse(".version 8.4\n.target sm_80, debug\n");
  ASSERT_TRUE(module) << module.error().message();
  EXPECT_EQ(module->version_major, 8u);
  EXPECT_EQ(module->version_minor, 4u);
  EXPECT_EQ(module->target, "sm_80");
}

TEST(Module, RefusesWhatItDoesNotKnow) {
  EXPECT_THAT(error_of(parse("")), HasSubstr("expected \".version\" at the start"));
  EXPECT_THAT(error_of(parse(".version 9.1 .target sm_90")),
              HasSubstr("PTX ISA 9.1 is not supported: the newest is 9.0"));
  EXPECT_THAT(error_of(parse(".version 10.0 .target sm_90")), HasSubstr("10.0 is not supported"));
  EXPECT_THAT(error_of(parse(".version 9 .target sm_90")), HasSubstr("expected a version"));
  EXPECT_THAT(error_of(parse(".version 9.0 .target gfx900")), HasSubstr("not of the form sm_90"));
  EXPECT_THAT(error_of(parse(".version 9.0 .target sm_90 .address_size 32")),
              HasSubstr("only 64 is supported"));
  EXPECT_THAT(text_error(".common .global .u32 a;"), HasSubstr("\".common\" is not supported"));
  EXPECT_THAT(text_error("ret;"), HasSubstr("expected a directive, found \"ret\""));
}

TEST(Module, AliasesAreOtherNamesOfFunctions) {
  Result<Module> module =
      parse(std::string(kHeader) + ".func f() { ret; }\n.visible .func other();\n.alias other, f;");
  ASSERT_TRUE(module.has_value()) << module.error().message();
  EXPECT_EQ(module->find_function("other")->alias_of, 0);
  EXPECT_EQ(module->find_function("f")->alias_of, -1);
  EXPECT_THAT(text_error(".func f() { ret; } .alias g, f;"), HasSubstr("\"g\" is no function"));
  EXPECT_THAT(text_error(".func f() { ret; } .func g() { ret; } .alias g, f;"),
              HasSubstr("\"g\" is a function of its own"));
  EXPECT_THAT(text_error(".func f(); .func g(); .alias g, f;"), HasSubstr("\"f\" has no body"));
  EXPECT_THAT(text_error(".func f(); .alias f, f;"), HasSubstr("\"f\" has no body"));
}

TEST(Variable, HasSpaceTypeSizeAndAlignment) {
  Variable table = variable(".visible .global .align 16 .b32 table[3][5];");
  EXPECT_EQ(table.name, "table");
  EXPECT_EQ(table.space, Space::kGlobal);
  EXPECT_EQ(table.type, Type::kB32);
  EXPECT_EQ(table.bytes, 60u);
  EXPECT_EQ(table.align, 16u);
  EXPECT_TRUE(table.is_visible);
  EXPECT_TRUE(table.initial.empty());
  EXPECT_EQ(variable(".const .f64 c;").align, 8u);
  Variable vector = variable(".global .v4 .f32 v[2];");
  EXPECT_EQ(vector.bytes, 32u);
  EXPECT_EQ(vector.align, 16u);
  EXPECT_TRUE(variable(".global .attribute(.managed) .align 4 .u32 m = 3;").is_managed);
  EXPECT_EQ(variable(".global .u8 a[(2 + 3) * 4];").bytes, 20u);
}

TEST(Variable, MayBeAnUnsizedExtern) {
  Variable dynamic = variable(".extern .shared .align 16 .b8 dynamic[];");
  EXPECT_TRUE(dynamic.is_extern);
  EXPECT_EQ(dynamic.space, Space::kShared);
  EXPECT_EQ(dynamic.bytes, 0u);
  EXPECT_THAT(text_error(".global .u32 a[];"), HasSubstr("\"a\" needs a size"));
  EXPECT_THAT(text_error(".global .u32 a[4][];"), HasSubstr("expected a constant"));
}

TEST(Variable, ADefinitionReplacesAnExternDeclaration) {
  Result<Module> module = parse_text(
      ".extern .global .u32 a[4]; .global .u64 p = a; .visible .global .u32 a[4] = {1};\n"
      ".extern .global .u32 a[4];");
  ASSERT_TRUE(module) << module.error().message();
  ASSERT_EQ(module->variables.size(), 2u);
  EXPECT_FALSE(module->variables[0].is_extern);
  EXPECT_THAT(module->variables[0].initial, ElementsAre(1, 0, 0, 0));
  EXPECT_THAT(text_error(".global .u32 a; .global .u32 a;"), HasSubstr("declared in this scope"));
}

TEST(Variable, RefusesSizesThatOverflow) {
  EXPECT_THAT(text_error(".global .b8 a[4294967296][4294967296];"), HasSubstr("larger than"));
  EXPECT_THAT(text_error(".global .b64 a[140737488355328];"), HasSubstr("larger than"));
  EXPECT_THAT(text_error(".extern .global .b64 a[][140737488355328];"), HasSubstr("larger than"));
  EXPECT_THAT(text_error(".global .b8 a[-1];"), HasSubstr("array size must be from 0"));
  EXPECT_THAT(text_error(".global .b8 a[][70368744177664] = {{}, {}, {}, {}};"),
              HasSubstr("larger than"));
  EXPECT_THAT(text_error(".global .align 3 .b8 a;"), HasSubstr("3 is not a power of two"));
  EXPECT_THAT(text_error(".global .align 0 .b8 a;"), HasSubstr("0 is not a power of two"));
}

TEST(Variable, RefusesKindsThatAreNotSupported) {
  EXPECT_THAT(text_error(".global .texref t;"), HasSubstr(".texref variables are not supported"));
  EXPECT_THAT(text_error(".global .pred p;"), HasSubstr("type .pred has no size"));
  EXPECT_THAT(text_error(".global .u32 a<4>;"), HasSubstr("supported in .reg only"));
  EXPECT_THAT(text_error(".local .u32 a;"), HasSubstr(".local variables outside a function"));
  EXPECT_THAT(text_error(".global .attribute(.unified(1, 2)) .u32 a;"),
              HasSubstr("attribute \".unified\" is not supported"));
}

TEST(Initializer, StoresIntegersLittleEndianAndTruncated) {
  EXPECT_THAT(variable(".global .u32 a = -2;").initial, ElementsAre(0xfe, 0xff, 0xff, 0xff));
  EXPECT_THAT(variable(".const .u16 a[4] = {0x1234, 5};").initial, ElementsAre(0x34, 0x12, 5, 0));
  EXPECT_THAT(variable(".global .b8 a[3] = {1, 2 + 3, 511};").initial, ElementsAre(1, 5, 255));
  EXPECT_EQ(variable(".global .b8 a[8] = {1};").bytes, 8u);
}

TEST(Initializer, ConvertsFloats) {
  EXPECT_THAT(variable(".global .f32 a = 0f3FC00000;").initial, ElementsAre(0, 0, 0xc0, 0x3f));
  EXPECT_THAT(variable(".global .f32 a = 1.5;").initial, ElementsAre(0, 0, 0xc0, 0x3f));
  EXPECT_THAT(variable(".global .f64 a = 0f3F800000;").initial,
              ElementsAre(0, 0, 0, 0, 0, 0, 0xf0, 0x3f));
  EXPECT_THAT(text_error(".global .u32 a = 1.5;"), HasSubstr("floating-point initial value"));
  EXPECT_THAT(text_error(".global .f16 a = 1.5;"), HasSubstr("type .f16 are not supported"));
}

TEST(Initializer, NestsLikeTheDimensions) {
  EXPECT_THAT(variable(".global .b8 a[2][3] = {{1}, {2, 3}};").initial, ElementsAre(1, 0, 0, 2, 3));
  Variable deduced = variable(".global .b8 a[][2] = {{1, 2}, {}, {3}};");
  EXPECT_EQ(deduced.bytes, 6u);
  EXPECT_THAT(deduced.initial, ElementsAre(1, 2, 0, 0, 3));
  EXPECT_THAT(variable(".global .v2 .b8 a[2] = {{1, 2}, {3}};").initial, ElementsAre(1, 2, 3));
  EXPECT_THAT(text_error(".global .b8 a[2] = {1, 2, 3};"), HasSubstr("more initial values"));
  EXPECT_THAT(text_error(".global .b8 a[2][2] = {1, 2};"), HasSubstr("expected \"{\""));
  EXPECT_THAT(text_error(".global .b8 a = {1};"), HasSubstr("expected a constant"));
  EXPECT_THAT(text_error(".shared .b8 a = 1;"), HasSubstr("cannot have an initial value"));
}

TEST(Initializer, RecordsAddresses) {
  Variable pointers =
      variable(".global .u32 a[9]; .func f; .global .u64 p[4] = {generic(a)+8, 5, f, a};");
  ASSERT_EQ(pointers.fixups.size(), 3u);
  EXPECT_EQ(pointers.initial.size(), 32u);
  EXPECT_EQ(pointers.initial[8], 5);
  EXPECT_EQ(pointers.fixups[0].symbol, "a");
  EXPECT_EQ(pointers.fixups[0].addend, 8);
  EXPECT_TRUE(pointers.fixups[0].generic);
  EXPECT_EQ(pointers.fixups[0].bytes, 8u);
  EXPECT_EQ(pointers.fixups[1].offset, 16u);
  EXPECT_EQ(pointers.fixups[1].symbol, "f");
  EXPECT_FALSE(pointers.fixups[2].generic);
}

TEST(Initializer, TakesSingleBytesOfAddresses) {
  Variable packed =
      variable(".global .u32 a; .global .u8 p[3] = {7, 0xFF(a), 0xFF00(generic(a))};");
  ASSERT_EQ(packed.fixups.size(), 2u);
  EXPECT_EQ(packed.fixups[0].bytes, 1u);
  EXPECT_EQ(packed.fixups[0].shift_bits, 0u);
  EXPECT_EQ(packed.fixups[1].shift_bits, 8u);
  EXPECT_EQ(packed.fixups[1].offset, 2u);
  EXPECT_THAT(text_error(".global .u8 a; .global .u8 p[1] = {0xF0(a)};"),
              HasSubstr("must select one byte"));
  EXPECT_THAT(text_error(".global .u8 a; .global .u8 p[1] = {0(a)};"),
              HasSubstr("must select one byte"));
  EXPECT_THAT(text_error(".global .u8 a; .global .u32 p[1] = {0xFF(a)};"),
              HasSubstr("must select one byte"));
  EXPECT_THAT(text_error(".global .u8 a; .global .u8 p[1] = {a};"),
              HasSubstr("an address does not fit in .u8"));
}

TEST(Initializer, NeedsSymbolsOfTheModule) {
  EXPECT_TRUE(parse_text(".global .u64 p = later; .global .u32 later;"));
  EXPECT_THAT(text_error(".global .u64 p = nowhere;"),
              HasSubstr("needs the address of \"nowhere\", which the module does not have"));
}

TEST(Function, HasParametersAndDirectives) {
  Result<Module> module = parse_text(
      ".visible .entry k(.param .u64 .ptr .global .align 8 a, .param .align 16 .b8 s[40])\n"
      ".maxntid 128, 2\n.reqntid 64\n.minnctapersm 2\n.maxnreg 40\n.maxclusterrank 8\n"
      ".explicitcluster\n.reqnctapercluster 4, 1, 1\n.pragma \"x\";\n{ .pragma \"nounroll\"; }");
  ASSERT_TRUE(module) << module.error().message();
  const Function& kernel = module->functions[0];
  EXPECT_TRUE(kernel.is_entry);
  EXPECT_FALSE(kernel.is_extern);
  ASSERT_EQ(kernel.parameters.size(), 2u);
  EXPECT_EQ(kernel.parameters[0].space, Space::kParam);
  EXPECT_EQ(kernel.parameters[0].align, 8u);
  EXPECT_EQ(kernel.parameters[1].bytes, 40u);
  EXPECT_EQ(kernel.parameters[1].align, 16u);
  EXPECT_THAT(kernel.max_threads, ElementsAre(128, 2, 1));
  EXPECT_THAT(kernel.required_threads, ElementsAre(64, 1, 1));
  EXPECT_THAT(kernel.required_cluster, ElementsAre(4, 1, 1));
  EXPECT_EQ(kernel.min_blocks_per_sm, 2u);
  EXPECT_EQ(kernel.max_registers, 40u);
  EXPECT_EQ(kernel.max_cluster_blocks, 8u);
  EXPECT_TRUE(kernel.explicit_cluster);
  EXPECT_THAT(kernel.pragmas, ElementsAre("x", "nounroll"));
}

TEST(Function, ADefinitionKeepsTheIndexOfItsDeclaration) {
  Result<Module> module = parse_text(
      ".extern .func (.param .b32 r) vprintf(.param .b64 f, .param .b64 v);\n"
      ".func g(.param .b32 x);\n.func f() { call g, (1); ret; }\n"
      ".weak .func g(.param .b32 y) { ret; }\n.func g(.param .b32 z);");
  ASSERT_TRUE(module) << module.error().message();
  ASSERT_EQ(module->functions.size(), 3u);
  EXPECT_EQ(module->functions[2].body[0].operands[1].symbol_index, 1);
  const Function* g = module->find_function("g");
  ASSERT_EQ(g, &module->functions[1]);
  EXPECT_FALSE(g->is_extern);
  EXPECT_TRUE(g->is_weak);
  EXPECT_EQ(g->parameters[0].name, "y");
  EXPECT_TRUE(module->find_function("vprintf")->is_extern);
  EXPECT_EQ(module->find_function("h"), nullptr);
  EXPECT_EQ(module->find_variable("g"), nullptr);
}

TEST(Function, MayCallItselfAndUseItsOwnAddress) {
  Result<Module> module = parse_text(".func f() { .reg .b64 a; call f; mov.u64 a, f; ret; }");
  ASSERT_TRUE(module) << module.error().message();
  EXPECT_EQ(module->functions[0].body[1].operands[1].symbol, Operand::Symbol::kFunction);
}

TEST(Function, RefusesContradictions) {
  EXPECT_THAT(text_error(".func f() { ret; } .func f() { ret; }"), HasSubstr("has two bodies"));
  EXPECT_THAT(text_error(".func f(); .func f(.param .b32 a) { ret; }"),
              HasSubstr("declared with another signature"));
  EXPECT_THAT(text_error(".func f(); .entry f() { ret; }"), HasSubstr("another signature"));
  EXPECT_THAT(text_error(".global .u32 f; .func f();"), HasSubstr("\"f\" is a variable already"));
  EXPECT_THAT(text_error(".extern .func f() { ret; }"), HasSubstr("has a body"));
  EXPECT_THAT(text_error(".func f(.param .b32 a, .param .b32 a);"),
              HasSubstr("two parameters are named \"a\""));
  EXPECT_THAT(text_error(".func f(.reg .b32 a);"), HasSubstr(".reg parameters are not supported"));
  EXPECT_THAT(text_error(".entry k() .blocksareclusters { ret; }"),
              HasSubstr("directive \".blocksareclusters\" of a function is not supported"));
  EXPECT_THAT(text_error(".entry k() .maxntid 1, 2, 3, 4 { ret; }"), HasSubstr("more than three"));
  EXPECT_THAT(text_error(".entry k() .maxntid 0 { ret; }"), HasSubstr(".maxntid of 0"));
  EXPECT_THAT(text_error(".entry k()"), HasSubstr("expected the body of a function"));
}

TEST(Location, FollowsInlinedCalls) {
  Result<Module> module = parse_text(
      ".entry k() { nop; .loc 1 9 0\nnop;\n.loc 1 2 3, function_name $L1, inlined_at 1 9 0\nnop;\n"
      ".loc 2 4 4, function_name $L2 + 8, inlined_at 1 2 3\nnop; .loc 1 9 0\nnop; }\n"
      ".file 1 \"a.cu\"\n.file 2 \"b.h\", 123, 456\n"
      ".section .debug_str { $L1: .b8 1, 2 }");
  ASSERT_TRUE(module) << module.error().message();
  EXPECT_THAT(module->files, ElementsAre("", "a.cu", "b.h"));
  const std::vector<Instruction>& body = module->functions[0].body;
  EXPECT_EQ(body[0].location, -1);
  const Location& innermost = module->locations[body[3].location];
  EXPECT_EQ(innermost.file, 2u);
  EXPECT_EQ(innermost.line, 4u);
  const Location& middle = module->locations[innermost.inlined_at];
  EXPECT_EQ(middle.line, 2u);
  EXPECT_EQ(module->locations[middle.inlined_at].line, 9u);
  EXPECT_EQ(body[4].location, body[1].location);
  EXPECT_EQ(module->locations.size(), 3u);
  EXPECT_THAT(text_error(".entry k() { .loc 3 1 1\nret; }"), HasSubstr(".loc names file 3"));
}

TEST(Type, NamesRoundTrip) {
  for (const char* name : {"b8", "b128", "u16", "s64", "f16x2", "bf16", "f64", "pred"}) {
    EXPECT_STREQ(name_of(type_from_name(name)), name);
  }
  EXPECT_EQ(bytes_of(Type::kB128), 16u);
  EXPECT_EQ(bytes_of(Type::kPred), 0u);
  EXPECT_EQ(type_from_name("none"), Type::kNone);
  EXPECT_EQ(type_from_name("other"), Type::kNone);
}

}  // namespace
}  // namespace cb::ptx
