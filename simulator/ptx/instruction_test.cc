#include "simulator/ptx/test_text.h"

namespace cb::ptx {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Kind = Operand::Kind;
using Symbol = Operand::Symbol;

Instruction only(const std::string& text) {
  Function kernel = kernel_of(text);
  EXPECT_EQ(kernel.body.size(), 1u) << text;
  return kernel.body.empty() ? Instruction{} : kernel.body[0];
}

Operand operand(const std::string& text) {
  Instruction instruction = only("op " + text + ";");
  EXPECT_EQ(instruction.operands.size(), 1u) << text;
  return instruction.operands.empty() ? Operand{} : instruction.operands[0];
}

std::string body_error(const std::string& text) { return error_of(parse_body(text)); }

TEST(Instruction, SeparatesOpcodeAndModifiers) {
  Instruction ld = only("ld.relaxed.sys.global.L1::no_allocate.v2.u32 {%r1, %r2}, [%rd1+16];");
  EXPECT_EQ(ld.opcode, "ld");
  EXPECT_THAT(ld.modifiers,
              ElementsAre("relaxed", "sys", "global", "L1::no_allocate", "v2", "u32"));
  EXPECT_TRUE(ld.has("sys"));
  EXPECT_FALSE(ld.has("sy"));
  EXPECT_EQ(ld.full_name(), "ld.relaxed.sys.global.L1::no_allocate.v2.u32");
  EXPECT_EQ(ld.text_line, 6u);
  EXPECT_EQ(ld.guard, -1);
}

TEST(Instruction, TakesOpcodesThatNobodyKnows) {
  EXPECT_EQ(only("vadd4.u32.u32.u32.sat %r1, %r2, %r3, %r4;").operands.size(), 4u);
  EXPECT_TRUE(only("frobnicate.x;").operands.empty());
}

TEST(Instruction, HasGuards) {
  Function kernel = kernel_of("@%p3 ret; @!%p4 exit;");
  ASSERT_EQ(kernel.body.size(), 2u);
  EXPECT_EQ(kernel.registers[kernel.body[0].guard].name, "%p3");
  EXPECT_FALSE(kernel.body[0].guard_negated);
  EXPECT_EQ(kernel.registers[kernel.body[1].guard].name, "%p4");
  EXPECT_TRUE(kernel.body[1].guard_negated);
  EXPECT_THAT(body_error("@%r1 ret;"), HasSubstr("\"%r1\" is not a register of type .pred"));
  EXPECT_THAT(body_error("@%p1"), HasSubstr("expected an instruction after a guard"));
}

TEST(Operand, IsARegisterWithItsType) {
  Function kernel = kernel_of("mov.b64 %rd7, %rd9;");
  const Operand& to = kernel.body[0].operands[0];
  EXPECT_EQ(to.kind, Kind::kRegister);
  EXPECT_EQ(kernel.registers[to.reg].name, "%rd7");
  EXPECT_EQ(kernel.registers[to.reg].type, Type::kB64);
  EXPECT_NE(to.reg, kernel.body[0].operands[1].reg);
}

TEST(Operand, IsAnImmediate) {
  EXPECT_EQ(operand("-3").bits, static_cast<uint64_t>(-3));
  EXPECT_EQ(operand("-2147483648").bits, 0xffffffff80000000ull);
  EXPECT_EQ(operand("(1 << 4) + 2").bits, 18u);
  EXPECT_EQ(operand("WARP_SZ").bits, 32u);
  Operand single = operand("0f3F800000");
  EXPECT_EQ(single.kind, Kind::kImmediate);
  EXPECT_TRUE(single.is_float);
  EXPECT_FALSE(single.is_double);
  EXPECT_EQ(single.bits, 0x3f800000u);
  Operand decimal = operand("1.0");
  EXPECT_TRUE(decimal.is_double);
  EXPECT_EQ(decimal.bits, 0x3ff0000000000000u);
  EXPECT_TRUE(operand("0d3FF0000000000000").is_double);
}

TEST(Operand, IsASpecialRegister) {
  Operand tid = operand("%tid.x");
  EXPECT_EQ(tid.kind, Kind::kSpecial);
  EXPECT_EQ(tid.name, "%tid.x");
  EXPECT_EQ(operand("%clock64").name, "%clock64");
  EXPECT_EQ(operand("%envreg2").name, "%envreg2");
  EXPECT_THAT(body_error("op %tid;"), HasSubstr("expected .x, .y, .z or .w after %tid"));
  EXPECT_THAT(body_error("op %nonsense;"),
              HasSubstr("ptx:6: unknown register \"%nonsense\": no .reg declares it"));
}

TEST(Operand, IsMemoryWithAnyBase) {
  Operand by_register = operand("[%rd3+-16]");
  EXPECT_EQ(by_register.kind, Kind::kMemory);
  EXPECT_GE(by_register.reg, 0);
  EXPECT_EQ(by_register.offset, -16);
  EXPECT_EQ(operand("[%rd3+4*(2+1)]").offset, 12);
  Operand by_name = operand("[record+8]");
  EXPECT_EQ(by_name.reg, -1);
  EXPECT_EQ(by_name.symbol, Symbol::kParameter);
  EXPECT_EQ(by_name.symbol_index, 1);
  EXPECT_EQ(by_name.name, "record");
  EXPECT_EQ(by_name.offset, 8);
  Operand absolute = operand("[0x100]");
  EXPECT_EQ(absolute.symbol, Symbol::kNone);
  EXPECT_EQ(absolute.offset, 256);
  EXPECT_THAT(body_error("op [nowhere];"), HasSubstr("unknown name \"nowhere\" in an address"));
  EXPECT_THAT(body_error("op [%rd1;"), HasSubstr("expected \"]\" after an address"));
  EXPECT_THAT(body_error("op [1.5];"), HasSubstr("a floating-point address"));
}

TEST(Operand, IsAVectorPairOrSink) {
  Operand vector = operand("{%r1, _, 5, record}");
  EXPECT_EQ(vector.kind, Kind::kVector);
  ASSERT_EQ(vector.elements.size(), 4u);
  EXPECT_EQ(vector.elements[0].kind, Kind::kRegister);
  EXPECT_EQ(vector.elements[1].kind, Kind::kSink);
  EXPECT_EQ(vector.elements[2].kind, Kind::kImmediate);
  EXPECT_EQ(vector.elements[3].kind, Kind::kVariable);
  Operand pair = operand("_|%p2");
  EXPECT_EQ(pair.kind, Kind::kPair);
  ASSERT_EQ(pair.elements.size(), 2u);
  EXPECT_EQ(pair.elements[0].kind, Kind::kSink);
  EXPECT_EQ(pair.elements[1].kind, Kind::kRegister);
  EXPECT_THAT(body_error("op %p1|3;"), HasSubstr("expected a register or \"_\" after \"|\""));
}

TEST(Operand, IsANegatedPredicate) {
  Operand negated = operand("!%p5");
  EXPECT_EQ(negated.kind, Kind::kRegister);
  EXPECT_TRUE(negated.negated);
  EXPECT_THAT(body_error("op !%r5;"), HasSubstr("not a register of type .pred"));
}

TEST(Operand, HasTheCoordinatesOfATensorCopy) {
  Operand copy = operand("[%rd4+64, {%r1, %r2}]");
  EXPECT_EQ(copy.kind, Kind::kCoordinates);
  ASSERT_EQ(copy.elements.size(), 2u);
  EXPECT_EQ(copy.elements[0].kind, Kind::kMemory);
  EXPECT_EQ(copy.elements[0].offset, 64);
  EXPECT_EQ(copy.elements[1].kind, Kind::kVector);
  EXPECT_EQ(copy.elements[1].elements.size(), 2u);
  EXPECT_EQ(operand("[%rd4, %r1, {%r1, %r2, %r3, %r4}]").elements.size(), 3u);
}

TEST(Operand, NamesTheVariableOfItsScope) {
  Function kernel = kernel_of(
      "{ .param .b32 p0; st.param.b32 [p0], 1; }\n"
      "{ .param .b64 p0; st.param.b64 [p0+0], 2; mov.u64 %rd1, p0+4; }");
  ASSERT_EQ(kernel.variables.size(), 2u);
  EXPECT_EQ(kernel.body[0].operands[0].symbol, Symbol::kFunctionVariable);
  EXPECT_EQ(kernel.body[0].operands[0].symbol_index, 0);
  EXPECT_EQ(kernel.body[1].operands[0].symbol_index, 1);
  EXPECT_EQ(kernel.variables[1].bytes, 8u);
  const Operand& address = kernel.body[2].operands[1];
  EXPECT_EQ(address.kind, Kind::kVariable);
  EXPECT_EQ(address.symbol_index, 1);
  EXPECT_EQ(address.offset, 4);
}

TEST(Operand, RefusesSelectorsByName) {
  EXPECT_THAT(body_error("add.u32 %r1, %r2.b0, %r3;"),
              HasSubstr("selector \".b0\" of register \"%r2\" is not supported"));
}

TEST(Operand, OfVideoInstructionsHasPartsAndSigns) {
  Function kernel = kernel_of("vmad.s32.u32.u32 %r1, %r2.b0, -%r3.h1, -5;");
  const std::vector<Operand>& operands = kernel.body[0].operands;
  ASSERT_EQ(operands.size(), 4u);
  EXPECT_EQ(operands[0].name, "");
  EXPECT_EQ(operands[1].name, "b0");
  EXPECT_FALSE(operands[1].negated);
  EXPECT_EQ(operands[2].name, "h1");
  EXPECT_TRUE(operands[2].negated);
  EXPECT_EQ(operands[3].bits, static_cast<uint64_t>(-5));
  EXPECT_THAT(body_error("vmad.s32.u32.u32 %r1, -_, %r2, %r3;"),
              HasSubstr("expected a register or a constant after"));
}

TEST(Operand, SpecialRegistersAreVectorsInVectorMoves) {
  Function kernel = kernel_of("mov.v4.u32 {%r1, %r2, %r3, %r4}, %tid;");
  EXPECT_EQ(kernel.body[0].operands[1].name, "%tid");
}

TEST(Scope, KeepsRegistersOfSiblingsApart) {
  Function kernel = kernel_of(
      "{ .reg .b32 t; mov.u32 t, 1; { .reg .b64 t; mov.u64 t, 2; } mov.u32 t, 3; }\n"
      "{ .reg .pred t; setp.eq.u32 t, 1, 2; }");
  auto type = [&](size_t i) { return kernel.registers[kernel.body[i].operands[0].reg].type; };
  EXPECT_EQ(type(0), Type::kB32);
  EXPECT_EQ(type(1), Type::kB64);
  EXPECT_EQ(kernel.body[2].operands[0].reg, kernel.body[0].operands[0].reg);
  EXPECT_EQ(type(3), Type::kPred);
  EXPECT_THAT(body_error("{ .reg .b32 t; } mov.u32 t, 1;"), HasSubstr("unknown name \"t\""));
}

TEST(Scope, LetsANumberedRegisterHideAnOuterOne) {
  Function kernel = kernel_of(
      "mov.b32 %r1, 0;\n"
      "{ .reg .b64 %r<3>; mov.b64 %r1, 1; mov.b32 %r5, 2; }\n"
      "mov.b32 %r1, 3;");
  auto reg = [&](size_t i) { return kernel.body[i].operands[0].reg; };
  EXPECT_EQ(kernel.registers[reg(1)].type, Type::kB64);
  EXPECT_EQ(kernel.registers[reg(2)].type, Type::kB32);
  EXPECT_EQ(reg(3), reg(0));
  EXPECT_NE(reg(1), reg(0));
}

TEST(Scope, ReadsNumbersOfNumberedRegistersExactly) {
  EXPECT_EQ(kernel_of("mov.b32 %r98, 0;").registers[0].name, "%r98");
  EXPECT_THAT(body_error("mov.b32 %r99, 0;"), HasSubstr("unknown register \"%r99\""));
  EXPECT_THAT(body_error("mov.b32 %r01, 0;"), HasSubstr("unknown register \"%r01\""));
  EXPECT_THAT(body_error("mov.b32 %r, 0;"), HasSubstr("unknown register \"%r\""));
  // %q1<3> is %q10 to %q12.
  Function kernel =
      kernel_of(".reg .b32 %q<5>; .reg .b64 %q1<3>; mov.b64 %q12, 0; mov.b32 %q1, 0;");
  EXPECT_EQ(kernel.registers[0].type, Type::kB64);
  EXPECT_EQ(kernel.registers[1].type, Type::kB32);
}

TEST(Scope, RefusesASecondDeclaration) {
  EXPECT_THAT(body_error(".reg .b32 a; .reg .b64 a;"),
              HasSubstr("\"a\" is declared in this scope already"));
  EXPECT_THAT(body_error(".reg .b32 %r<3>;"), HasSubstr("declared in this scope already"));
  EXPECT_THAT(body_error(".reg .b32 %r5;"), HasSubstr("declared in this scope already"));
  EXPECT_THAT(body_error(".reg .b32 pointer;"), HasSubstr("declared in this scope already"));
}

TEST(Label, IsFoundForwardsAndOutwards) {
  Function kernel = kernel_of("bra END; { bra END; bra IN; IN: ret; } AGAIN: bra.uni AGAIN; END:");
  auto target = [&](size_t i) { return kernel.body[i].operands[0].bits; };
  EXPECT_EQ(kernel.body[0].operands[0].kind, Kind::kLabel);
  EXPECT_EQ(target(0), 5u);
  EXPECT_EQ(target(1), 5u);
  EXPECT_EQ(target(2), 3u);
  EXPECT_EQ(target(4), 4u);
}

TEST(Label, MayRepeatInSiblingAndInnerScopes) {
  Function kernel = kernel_of("W: { W: bra W; } { bra W; W: ret; } bra W;");
  auto target = [&](size_t i) { return kernel.body[i].operands[0].bits; };
  EXPECT_EQ(target(0), 0u);
  EXPECT_EQ(target(1), 2u);
  EXPECT_EQ(target(3), 0u);
}

TEST(Label, MustExistOnceAndInScope) {
  EXPECT_THAT(body_error("bra NOWHERE;"), HasSubstr("ptx:6: unknown label \"NOWHERE\""));
  EXPECT_THAT(body_error("bra IN; { IN: ret; }"), HasSubstr("unknown label \"IN\""));
  EXPECT_THAT(body_error("A: ret;\nB: ret;\nA: ret;"),
              HasSubstr("ptx:8: label \"A\" is defined on line 6 already"));
  EXPECT_THAT(body_error("T: .branchtargets A; A: bra T;"),
              HasSubstr("\"T\" is a .branchtargets list, expected a label of an instruction"));
}

TEST(Label, FillsBranchTables) {
  Function kernel = kernel_of(
      "T: .branchtargets A, B, A; brx.idx %r1, T; A: ret; B: exit;\n"
      "{ T: .branchtargets B; brx.idx.uni %r1, T; }");
  ASSERT_EQ(kernel.branch_tables.size(), 2u);
  EXPECT_THAT(kernel.branch_tables[0], ElementsAre(1u, 2u, 1u));
  EXPECT_THAT(kernel.branch_tables[1], ElementsAre(2u));
  EXPECT_EQ(kernel.body[0].operands[1].kind, Kind::kBranchTable);
  EXPECT_EQ(kernel.body[0].operands[1].bits, 0u);
  EXPECT_EQ(kernel.body[3].operands[1].bits, 1u);
  EXPECT_THAT(body_error("brx.idx %r1, A; A: ret;"), HasSubstr("expected a .branchtargets list"));
}

Result<Module> parse_with_callee(const std::string& body) {
  return parse_text(
      ".func (.param .b32 result) callee(.param .b64 a, .param .b32 b);\n"
      ".func plain;\n.global .u32 variable;\n"
      ".entry kernel() { .reg .b32 %r<9>; .reg .b64 %rd<9>; .param .b64 p; .param .b32 q, r;\n" +
      body + "}");
}

Instruction call_of(const std::string& body) {
  Result<Module> module = parse_with_callee(body);
  if (!module) {
    ADD_FAILURE() << module.error().message();
    return {};
  }
  return module->functions.back().body.at(0);
}

TEST(Call, HasReturnsCalleeAndArguments) {
  Instruction call = call_of("call.uni (r), callee, (p, %r1);");
  ASSERT_EQ(call.operands.size(), 3u);
  EXPECT_EQ(call.operands[0].kind, Kind::kList);
  EXPECT_EQ(call.operands[0].elements.size(), 1u);
  EXPECT_EQ(call.operands[1].kind, Kind::kVariable);
  EXPECT_EQ(call.operands[1].symbol, Symbol::kFunction);
  EXPECT_EQ(call.operands[1].symbol_index, 0);
  ASSERT_EQ(call.operands[2].elements.size(), 2u);
  EXPECT_EQ(call.operands[2].elements[0].symbol, Symbol::kFunctionVariable);
  EXPECT_EQ(call.operands[2].elements[1].kind, Kind::kRegister);
}

TEST(Call, MayHaveNeitherReturnsNorArguments) {
  for (const char* text : {"call plain;", "call plain, ();", "call.uni plain,();"}) {
    Instruction call = call_of(text);
    ASSERT_EQ(call.operands.size(), 3u) << text;
    EXPECT_TRUE(call.operands[0].elements.empty());
    EXPECT_EQ(call.operands[1].name, "plain");
    EXPECT_TRUE(call.operands[2].elements.empty());
  }
}

TEST(Call, ThroughARegisterNamesItsPrototype) {
  Result<Module> module = parse_with_callee(
      "call (r), %rd1, (p, q), proto;\n"
      "proto: .callprototype (.param .b32 _) _ (.param .b64 _, .param .align 8 .b8 _[12]);\n"
      "{ proto: .callprototype _ (.param .b32 _); call %rd2, (q), proto; }\n"
      "{ proto: .callprototype () _ () .noreturn; call %rd3, proto; }");
  ASSERT_TRUE(module) << module.error().message();
  const Function& kernel = module->functions.back();
  ASSERT_EQ(kernel.body[0].operands.size(), 4u);
  EXPECT_EQ(kernel.body[0].operands[1].kind, Kind::kRegister);
  EXPECT_EQ(kernel.body[0].operands[3].symbol, Symbol::kPrototype);
  auto prototype = [&](size_t i) { return kernel.prototypes.at(kernel.body[i].operands[3].name); };
  EXPECT_EQ(prototype(0).return_values.size(), 1u);
  ASSERT_EQ(prototype(0).parameters.size(), 2u);
  EXPECT_EQ(prototype(0).parameters[1].bytes, 12u);
  EXPECT_EQ(prototype(0).parameters[1].align, 8u);
  EXPECT_EQ(prototype(1).parameters.size(), 1u);
  EXPECT_TRUE(prototype(2).parameters.empty());
}

TEST(Call, HasThePrototypeOfItsTargets) {
  Result<Module> module = parse_with_callee("t: .calltargets callee; call (r), %rd1, (p, %r1), t;");
  ASSERT_TRUE(module.has_value()) << error_of(module);
  const Function& kernel = module->functions.back();
  const Function::Prototype& prototype = kernel.prototypes.at(kernel.body[0].operands[3].name);
  EXPECT_EQ(prototype.parameters.size(), module->functions[0].parameters.size());
  EXPECT_EQ(prototype.return_values.size(), module->functions[0].return_values.size());
}

TEST(Call, RefusesWhatCannotBeCalled) {
  auto error = [](const std::string& body) { return error_of(parse_with_callee(body)); };
  EXPECT_THAT(error("call nothing;"), HasSubstr("call of \"nothing\", which no .func declares"));
  EXPECT_THAT(error("call variable;"), HasSubstr("call of \"variable\", which is a variable"));
  EXPECT_THAT(error("call %rd1, (p);"), HasSubstr("an indirect call needs a .callprototype"));
  EXPECT_THAT(error("call plain, (), proto;"), HasSubstr("a direct call has no .callprototype"));
  EXPECT_THAT(error("call %rd1, (p), A; A: ret;"), HasSubstr("expected a .callprototype"));
  EXPECT_THAT(error("t: .calltargets variable;"),
              HasSubstr("\"variable\" is no function that .func declares"));
}

TEST(Body, RefusesWhatIsNoStatement) {
  EXPECT_THAT(body_error(";"), HasSubstr("expected an instruction, found \";\""));
  EXPECT_THAT(body_error("op 1"), HasSubstr("expected \";\" after an instruction"));
  EXPECT_THAT(body_error("{ ret;"), HasSubstr("found the end of the text"));
  EXPECT_THAT(body_error("mov.u32 %r1, %r2 %r3;"), HasSubstr("expected \";\""));
  EXPECT_THAT(body_error("mov.u32 %r1,;"), HasSubstr("expected an operand, found \";\""));
  EXPECT_THAT(body_error(".reg .v4 .f32 v;"), HasSubstr("vector registers are not supported"));
  EXPECT_THAT(body_error(".tex .u32 t;"), HasSubstr("directive \".tex\" in a function"));
}

}  // namespace
}  // namespace cb::ptx
