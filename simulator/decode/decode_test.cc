#include "simulator/decode/decode.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/file.h"
#include "simulator/decode/flow.h"
#include "simulator/decode/schedule.h"
#include "simulator/decode/select.h"
#include "simulator/decode/slots.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

constexpr char kHeader[] = ".version 9.0\n.target sm_90a\n.address_size 64\n";

std::shared_ptr<const ptx::Module> module_of(const std::string& text) {
  return std::make_shared<const ptx::Module>(value_or_throw(ptx::parse(kHeader + text)));
}

std::string kernel(const std::string& body) {
  return ".visible .entry k(.param .u64 out)\n{\n.reg .pred %p<9>; .reg .b32 %r<99>;"
         " .reg .b64 %rd<99>; .reg .b128 %q<3>;\n" +
         body + "\n}\n";
}

Result<std::shared_ptr<const Program>> decode_body(const std::string& body,
                                                   const DecodeOptions& options = {}) {
  return decode(module_of(kernel(body)), "k", StallModel{}, options);
}

const FunctionCode& code_of(const Result<std::shared_ptr<const Program>>& program) {
  return *value_or_throw(program)->functions.front();
}

/// Texts of the operations, in order.
std::vector<std::string> order_of(const FunctionCode& code) {
  std::vector<std::string> names;
  for (size_t i = 0; i + 1 < code.ops.size(); ++i) {
    names.push_back(code.source->body[code.info[i].instruction].full_name());
  }
  return names;
}

TEST(DecodeTest, UnknownInstructionsAreRefusedByNameAndLine) {
  auto program = decode_body("tcgen05.wait::ld.sync.aligned;\nret;");
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message(), HasSubstr("ptx:7: tcgen05.wait::ld.sync.aligned"));
}

TEST(DecodeTest, UndefinedFunctionsAreRefusedByName) {
  auto program = decode(module_of(".extern .func helper();\n" + kernel("call helper;\nret;")), "k",
                        StallModel{});
  ASSERT_FALSE(program);
  EXPECT_THAT(program.error().message(), HasSubstr("helper"));
}

TEST(DecodeTest, LoadsMoveUpButNotPastStores) {
  std::string body = R"(
  ld.param.u64 %rd1, [out];
  ld.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  ld.global.u32 %r3, [%rd1+4];
  add.u32 %r4, %r3, %r2;
  st.global.u32 [%rd1], %r4;
  ld.global.u32 %r5, [%rd1+8];
  st.global.u32 [%rd1], %r5;
  ret;)";
  EXPECT_THAT(
      order_of(code_of(decode_body(body))),
      ::testing::ElementsAre("ld.param.u64", "ld.global.u32", "ld.global.u32", "add.u32", "add.u32",
                             "st.global.u32", "ld.global.u32", "st.global.u32", "ret"));
  EXPECT_THAT(
      order_of(code_of(decode_body(body, {.schedule_loads = false}))),
      ::testing::ElementsAre("ld.param.u64", "ld.global.u32", "add.u32", "ld.global.u32", "add.u32",
                             "st.global.u32", "ld.global.u32", "st.global.u32", "ret"));
}

TEST(DecodeTest, StrongLoadsAndBarriersKeepTheirPlaces) {
  EXPECT_THAT(order_of(code_of(decode_body(R"(
  ld.param.u64 %rd1, [out];
  ld.acquire.gpu.global.u32 %r1, [%rd1];
  add.u32 %r2, %r1, 1;
  ld.global.u32 %r3, [%rd1+4];
  bar.sync 0;
  ld.global.u32 %r4, [%rd1+8];
  ret;)"))),
              ::testing::ElementsAre("ld.param.u64", "ld.acquire.gpu.global.u32", "ld.global.u32",
                                     "add.u32", "bar.sync", "ld.global.u32", "ret"));
}

TEST(DecodeTest, OnlyLoopsThatMerelyWaitAreWaitLoops) {
  auto marked = [](const std::string& loop) {
    auto program = decode_body("ld.param.u64 %rd1, [out];\nmov.u32 %r2, 0;\nagain:\n" + loop +
                               "\n@%p1 bra again;\nret;");
    return code_of(program).spin_loops.size();
  };
  EXPECT_EQ(marked("ld.acquire.sys.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;"), 1u);
  EXPECT_EQ(marked("ld.volatile.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;"), 1u);
  EXPECT_EQ(marked("atom.global.cas.b32 %r1, [%rd1], 0, 1; setp.ne.u32 %p1, %r1, 0;"), 1u);
  EXPECT_EQ(marked("ld.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0;"), 0u);
  EXPECT_EQ(marked("ld.volatile.global.u32 %r1, [%rd1]; st.global.u32 [%rd1], %r1;"
                   "setp.eq.u32 %p1, %r1, 0;"),
            0u);
  EXPECT_EQ(marked("ld.volatile.global.u32 %r1, [%rd1]; bar.sync 0; setp.eq.u32 %p1, %r1, 0;"), 0u);
}

TEST(DecodeTest, AWaitLoopCarriesItsCounter) {
  auto program = decode_body(R"(
  ld.param.u64 %rd1, [out];
  mov.u32 %r2, 0;
again:
  ld.volatile.global.u32 %r1, [%rd1];
  add.u32 %r2, %r2, 1;
  setp.eq.u32 %p1, %r1, 0;
  @%p1 bra again;
  st.global.u32 [%rd1], %r2;
  ret;)");
  const FunctionCode& code = code_of(program);
  ASSERT_EQ(code.spin_loops.size(), 1u);
  EXPECT_EQ(code.spin_loops[0].carried.size(), 1u);
  EXPECT_EQ(code.spin_loops[0].carried[0].bytes, 4);
}

TEST(DecodeTest, RegistersShareSlotsOfTheirWidthOnly) {
  auto program = decode_body(R"(
  ld.param.u64 %rd1, [out];
  add.u64 %rd2, %rd1, 8;
  cvt.u32.u64 %r1, %rd2;
  add.u32 %r2, %r1, 1;
  cvt.u64.u32 %rd3, %r2;
  st.global.u64 [%rd1], %rd3;
  ret;)");
  const FunctionCode& code = code_of(program);
  std::map<uint16_t, std::set<unsigned>> widths;
  for (size_t i = 0; i + 1 < code.ops.size(); ++i) {
    const ptx::Instruction& instruction = code.source->body[code.info[i].instruction];
    if (instruction.operands.empty()) continue;
    const ptx::Operand& d = instruction.operands[0];
    if (d.kind != ptx::Operand::Kind::kRegister) continue;
    ptx::Type type = code.source->registers[static_cast<size_t>(d.reg)].type;
    widths[code.ops[i].d.index].insert(ptx::bytes_of(type));
  }
  for (const auto& [slot, bytes] : widths) EXPECT_EQ(bytes.size(), 1u) << slot;
}

/// No two registers that live at the same time may have one slot.
void expect_no_clash(const std::string& text) {
  auto module = module_of(text);
  const ptx::Function& function = *module->find_function("k");
  SharedLayout shared;
  std::set<uint32_t> reached;
  bool unknown = false;
  FunctionIr ir = value_or_throw(select_operations(*module, function, shared, reached, unknown));
  FlowGraph graph = find_blocks(ir);
  schedule_loads(ir, graph);
  Liveness live = value_or_throw(find_liveness(ir, graph));
  SlotMap slots = value_or_throw(assign_slots(ir, graph, live, true));
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    std::set<uint32_t> now;
    live.live_out[b].for_each([&](uint32_t reg) { now.insert(reg); });
    for (uint32_t i = graph.blocks[b].end; i-- > graph.blocks[b].first;) {
      for_each_register(ir.ops[i], [&](uint32_t reg, bool is_destination) {
        if (is_destination && ir.ops[i].guard < 0) now.erase(reg);
      });
      for_each_register(ir.ops[i], [&](uint32_t reg, bool) { now.insert(reg); });
      std::map<std::pair<bool, uint16_t>, uint32_t> taken;
      for (uint32_t reg : now) {
        bool is_predicate = function.registers[reg].type == ptx::Type::kPred;
        auto [place, is_new] = taken.try_emplace({is_predicate, slots.registers[reg].index}, reg);
        EXPECT_TRUE(is_new) << function.registers[reg].name << " and "
                            << function.registers[place->second].name << " at " << i;
      }
    }
  }
}

TEST(DecodeTest, RandomControlFlowHasNoClashingSlots) {
  std::mt19937 random(5);
  auto below = [&](uint32_t bound) { return random() % bound; };
  for (int round = 0; round < 30; ++round) {
    std::string body = "ld.param.u64 %rd1, [out];\n";
    for (int i = 0; i < 80; ++i) {
      if (i % 8 == 0) body += fmt::format("L{}:\n", i / 8);
      switch (below(5)) {
        case 0:
          body += fmt::format("@%p{} add.u32 %r{}, %r{}, %r{};\n", 1 + below(4), below(20),
                              below(20), below(20));
          break;
        case 1:
          body +=
              fmt::format("setp.lt.u32 %p{}, %r{}, %r{};\n", 1 + below(4), below(20), below(20));
          break;
        case 2:
          body += fmt::format("@%p{} bra L{};\n", 1 + below(4), below(10));
          break;
        case 3:
          body += fmt::format("ld.global.u32 %r{}, [%rd1+{}];\n", below(20), 4 * below(9));
          break;
        default:
          body += fmt::format("mul.lo.u32 %r{}, %r{}, %r{};\n", below(20), below(20), below(20));
      }
    }
    expect_no_clash(kernel(body + "st.global.u32 [%rd1], %r1;\nret;"));
  }
}

TEST(DecodeTest, CallsKnowTheirStack) {
  auto program = decode(module_of(R"(
.func leaf(.param .b32 x) { .local .align 8 .b8 room[100]; ret; }
.func middle(.param .b32 x) { .param .b32 y; call leaf, (y); ret; }
)" + kernel(".param .b32 z; call middle, (z);\nret;")),
                        "k", StallModel{});
  ASSERT_TRUE(program) << program.error().what();
  EXPECT_FALSE((*program)->recursive);
  EXPECT_EQ((*program)->functions.size(), 3u);
  EXPECT_EQ((*program)->max_depth_bytes, 16u + 16u + 112u);
}

TEST(DecodeTest, MutatedTextGivesAProgramOrAnError) {
  std::string text = value_or_throw(
      read_file(std::string(COMMBENCH_SOURCE_DIR) + "/simulator/ptx/testdata/sync.ptx"));
  int programs = 0;
  for (uint32_t seed = 0; seed < 400; ++seed) {
    std::string changed = text;
    std::mt19937 random(seed);
    for (int i = 0; i < 20; ++i) {
      char& letter = changed[random() % changed.size()];
      if (letter >= '0' && letter <= '9') letter = static_cast<char>('0' + random() % 10);
    }
    auto parsed = ptx::parse(changed);
    if (!parsed) continue;
    auto module = std::make_shared<const ptx::Module>(std::move(*parsed));
    for (const ptx::Function& function : module->functions) {
      if (function.is_entry && decode(module, function.name, StallModel{})) ++programs;
    }
  }
  EXPECT_GT(programs, 20);
}

}  // namespace
}  // namespace cb::sim
