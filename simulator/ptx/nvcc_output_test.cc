#include <algorithm>
#include <set>

#include "simulator/ptx/test_text.h"

namespace cb::ptx {
namespace {

// What nvcc 13.0 made of testdata/*.cu, see testdata/generate.sh.

using ::testing::ElementsAre;
using ::testing::IsSubsetOf;
using Kind = Operand::Kind;

Module module_of(const std::string& name) {
  Result<Module> module = parse(test_data(name + ".ptx"));
  if (!module) {
    ADD_FAILURE() << name << ": " << module.error().message();
    return {};
  }
  return std::move(*module);
}

std::set<std::string> opcodes_of(const Function& function) {
  std::set<std::string> names;
  for (const Instruction& instruction : function.body) names.insert(instruction.full_name());
  return names;
}

const Instruction& first(const Function& function, const std::string& name) {
  auto found = std::find_if(function.body.begin(), function.body.end(),
                            [&](const Instruction& one) { return one.full_name() == name; });
  if (found == function.body.end()) throw std::runtime_error("no instruction " + name);
  return *found;
}

TEST(NvccOutput, InitialisesTables) {
  Module module = module_of("tables");
  const Variable* primes = module.find_variable("primes");
  ASSERT_NE(primes, nullptr);
  EXPECT_EQ(primes->space, Space::kConst);
  EXPECT_EQ(primes->bytes, 32u);
  EXPECT_EQ(primes->initial.size(), 17u);
  EXPECT_EQ(primes->initial[16], 11);
  const Variable* operations = module.find_variable("operations");
  ASSERT_NE(operations, nullptr);
  ASSERT_EQ(operations->fixups.size(), 2u);
  EXPECT_NE(module.find_function(operations->fixups[1].symbol), nullptr);
  EXPECT_EQ(operations->fixups[1].offset, 8u);
  const Variable* pointers = module.find_variable("pointers");
  ASSERT_EQ(pointers->fixups.size(), 2u);
  EXPECT_EQ(pointers->fixups[1].addend, 16);
  EXPECT_EQ(module.find_variable("packed")->fixups.size(), 8u);
  EXPECT_EQ(module.find_variable("packed")->fixups[7].shift_bits, 56u);
  EXPECT_TRUE(module.find_variable("shared_with_host")->is_managed);
  EXPECT_TRUE(module.find_variable("dynamic")->is_extern);
  const Function* lookup = module.find_function("_Z6lookupPii");
  ASSERT_NE(lookup, nullptr);
  EXPECT_EQ(lookup->variables[0].space, Space::kShared);
  EXPECT_EQ(lookup->variables[0].bytes, 256u);
  EXPECT_EQ(lookup->prototypes.size(), 1u);
}

TEST(NvccOutput, RepeatsLabelsOfInlineAssembly) {
  Module module = module_of("asm_scopes");
  const Function& kernel = module.functions.at(0);
  std::vector<uint64_t> waits;
  for (size_t i = 0; i < kernel.body.size(); ++i) {
    const Instruction& one = kernel.body[i];
    if (one.opcode != "bra" || one.operands[0].name != "LAB_WAIT") continue;
    waits.push_back(one.operands[0].bits);
    // The loop goes back to its own load, three instructions before.
    EXPECT_EQ(one.operands[0].bits, i - 3);
    EXPECT_EQ(kernel.body[i - 3].full_name(), "ld.acquire.sys.global.u32");
  }
  EXPECT_EQ(waits.size(), 3u);
  EXPECT_EQ(std::set<uint64_t>(waits.begin(), waits.end()).size(), 3u);
}

TEST(NvccOutput, KeepsTheOperandsOfInlineAssembly) {
  Module module = module_of("asm_scopes");
  const Function& kernel = module.functions.at(0);
  const Instruction& elect = first(kernel, "elect.sync");
  EXPECT_EQ(elect.operands[0].kind, Kind::kPair);
  EXPECT_EQ(kernel.registers[elect.operands[0].elements[1].reg].name, "%px1");
  const Instruction& copy = first(
      kernel, "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes");
  ASSERT_EQ(copy.operands.size(), 3u);
  EXPECT_EQ(copy.operands[1].kind, Kind::kCoordinates);
  const Instruction& cas = first(kernel, "atom.cas.sys.global.b128");
  EXPECT_EQ(kernel.registers[cas.operands[0].reg].type, Type::kB128);
  const Instruction& select = first(kernel, "selp.s32");
  EXPECT_EQ(static_cast<int64_t>(select.operands[2].bits), -1);
}

TEST(NvccOutput, CallsDirectlyAndThroughPointers) {
  Module module = module_of("calls");
  const Function* reduce = module.find_function("_Z6reduceP6Sampleii");
  ASSERT_NE(reduce, nullptr);
  EXPECT_THAT(reduce->max_threads, ElementsAre(256, 1, 1));
  EXPECT_EQ(reduce->min_blocks_per_sm, 2u);
  EXPECT_GT(reduce->prototypes.size(), 1u);
  std::set<std::string> callees;
  for (const Instruction& one : reduce->body) {
    if (one.opcode != "call") continue;
    const Operand& callee = one.operands.at(1);
    if (callee.kind == Kind::kRegister) {
      const auto& prototype = reduce->prototypes.at(one.operands.at(3).name);
      ASSERT_EQ(one.operands[2].elements.size(), prototype.parameters.size());
      const Operand& argument = one.operands[2].elements[0];
      EXPECT_EQ(reduce->variables[argument.symbol_index].bytes, prototype.parameters[0].bytes);
    } else {
      callees.insert(module.functions.at(callee.symbol_index).name);
    }
  }
  EXPECT_THAT(callees, ElementsAre("_Z9factoriali", "__assertfail", "vprintf"));
  EXPECT_TRUE(module.find_function("vprintf")->is_extern);
  EXPECT_EQ(module.find_function("_Z3add6Samplef")->return_values[0].bytes, 16u);
  const Function* spill = module.find_function("_Z5spillPfi");
  EXPECT_TRUE(spill->explicit_cluster);
  EXPECT_THAT(spill->required_cluster, ElementsAre(2, 1, 1));
  EXPECT_EQ(spill->variables[0].space, Space::kLocal);
}

TEST(NvccOutput, SynchronisesGrids) {
  const Module module = module_of("sync");
  const Function& kernel = module.functions.at(0);
  EXPECT_EQ(first(kernel, "bfi.b64").operands.size(), 5u);
  const std::set<std::string> expected = {"atom.add.release.sys.s32", "shfl.sync.down.b32",
                                          "match.any.sync.b32", "redux.sync.add.s32",
                                          "vote.sync.any.pred"};
  EXPECT_THAT(expected, IsSubsetOf(opcodes_of(kernel)));
  EXPECT_EQ(first(kernel, "shfl.sync.down.b32").operands[0].kind, Kind::kPair);
}

TEST(NvccOutput, ConvertsNarrowFloats) {
  const Module module = module_of("numbers");
  const std::set<std::string> expected = {"cvt.rn.satfinite.e4m3x2.f32",
                                          "cvt.rn.satfinite.e5m2x2.f32", "cvt.rn.bf16.f32",
                                          "fma.rn.bf16x2"};
  EXPECT_THAT(expected, IsSubsetOf(opcodes_of(module.functions.at(0))));
}

TEST(NvccOutput, TellsWhereCodeWasInlined) {
  Module module = module_of("lineinfo");
  EXPECT_THAT(module.files, ElementsAre("", "lineinfo.cu"));
  const Function& kernel = module.functions.at(0);
  std::vector<uint32_t> lines;
  for (int32_t at = first(kernel, "fma.rn.f32").location; at >= 0;
       at = module.locations[at].inlined_at) {
    lines.push_back(module.locations[at].line);
  }
  EXPECT_THAT(lines, ElementsAre(2, 5, 11));
}

}  // namespace
}  // namespace cb::ptx
