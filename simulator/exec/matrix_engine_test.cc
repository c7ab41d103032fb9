// Matrix instructions in whole kernels: divergent lanes come together, results arrive when the
// tensor cores are done, and what is not a warp is reported.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

class MatrixEngine : public ::testing::TestWithParam<EngineRig::Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, MatrixEngine, ::testing::ValuesIn(EngineRig::all_modes()));

std::string kernel(const std::string& body) {
  return fmt::format(R"(.visible .entry k(.param .u64 out)
{{
  .reg .pred %p<10>; .reg .b32 %r<40>; .reg .b64 %rd<20>; .reg .f32 %f<40>;
  .shared .align 1024 .b8 tile[2048];
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %tid.x; mul.wide.u32 %rd2, %r1, 4;
  add.s64 %rd0, %rd1, %rd2;
  {}
  ret;
}}
)",
                     body);
}

/// Ones in all places: an element of the product is 16 for each product that was added.
constexpr char kOnes[] = R"(
  mov.b32 %r10, 0x3c003c00;
  mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
)";
constexpr char kMma[] = R"(
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f0, %f1, %f2, %f3},
    {%r10, %r10, %r10, %r10}, {%r10, %r10}, {%f0, %f1, %f2, %f3};
)";

TEST_P(MatrixEngine, DivergentLanesComeTogether) {
  EngineRig rig(kernel(std::string(kOnes) + R"(
  and.b32 %r2, %r1, 1; setp.eq.u32 %p1, %r2, 0;
  @%p1 bra even;
  add.f32 %f0, %f0, 0f3f800000;
  add.f32 %f1, %f1, 0f3f800000;
even:
)" + kMma + "add.f32 %f0, %f0, %f3; st.global.f32 [%rd0], %f0;"),
                GetParam());
  auto* out = rig.buffer<float>(0, 32);
  rig.launch("k", 0, {.threads = 32}, {address_of(out)});
  rig.run();
  ASSERT_TRUE(rig.engine().findings().empty());
  for (int lane = 0; lane < 32; ++lane) EXPECT_EQ(out[lane], lane % 2 == 1 ? 33 : 32);
}

TEST_P(MatrixEngine, AMatrixGoesThroughSharedMemory) {
  EngineRig rig(kernel(R"(
  mov.u32 %r2, tile; shl.b32 %r3, %r1, 4; add.u32 %r4, %r2, %r3;
  st.shared.v4.u32 [%r4], {%r1, %r1, %r1, %r1};
  bar.sync 0;
  ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r5, %r6, %r7, %r8}, [%r4];
  st.global.u32 [%rd0], %r5; st.global.u32 [%rd0+128], %r6;
  st.global.u32 [%rd0+256], %r7; st.global.u32 [%rd0+384], %r8;)"),
                GetParam());
  auto* out = rig.buffer<uint32_t>(0, 128);
  rig.launch("k", 0, {.threads = 32}, {address_of(out)});
  rig.run();
  ASSERT_TRUE(rig.engine().findings().empty());
  for (uint32_t i = 0; i < 128; ++i) EXPECT_EQ(out[i], i / 4);
}

TEST_P(MatrixEngine, PartOfAWarpIsReported) {
  EngineRig rig(kernel(std::string(kOnes) + kMma + "st.global.f32 [%rd0], %f0;"), GetParam());
  auto* out = rig.buffer<float>(0, 48);
  rig.launch("k", 0, {.threads = 48}, {address_of(out)});
  rig.run();
  ASSERT_FALSE(rig.engine().findings().empty());
  EXPECT_EQ(rig.engine().findings()[0].kind, Finding::Kind::kIllegalInstruction);
}

/// Ones in both matrices of a warpgroup: an element of the product is 16.
constexpr char kWarpgroup[] = R"(
  mov.u32 %r2, tile; mov.b32 %r10, 0x3c003c00; shl.b32 %r3, %r1, 2; add.u32 %r4, %r2, %r3;
  st.shared.u32 [%r4], %r10; st.shared.u32 [%r4+512], %r10; st.shared.u32 [%r4+1024], %r10;
  st.shared.u32 [%r4+1536], %r10;
  fence.proxy.async;
  bar.sync 0;
  shr.u32 %r5, %r2, 4; cvt.u64.u32 %rd5, %r5; or.b64 %rd6, %rd5, 0x0000001000080000;
  wgmma.fence.sync.aligned;
)";
constexpr char kWgmma[] =
    "wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f0, %f1, %f2, %f3}, %rd6, %rd6, 1, 1, 1, "
    "0, "
    "0;\n";
constexpr char kZero[] = R"(
  mov.f32 %f0, 0f00000000; mov.f32 %f1, 0f00000000; mov.f32 %f2, 0f00000000; mov.f32 %f3, 0f00000000;
)";

TEST_P(MatrixEngine, AWarpgroupMultipliesTilesInSharedMemory) {
  EngineRig rig(kernel(std::string(kZero) + kWarpgroup + kWgmma + kWgmma + R"(
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  add.f32 %f0, %f0, %f1; add.f32 %f2, %f2, %f3; add.f32 %f0, %f0, %f2;
  st.global.f32 [%rd0], %f0;)"),
                GetParam());
  auto* out = rig.buffer<float>(0, 128);
  rig.launch("k", 0, {.threads = 128}, {address_of(out)});
  rig.run();
  ASSERT_TRUE(rig.engine().findings().empty()) << rig.engine().findings()[0].detail;
  for (int i = 0; i < 128; ++i) EXPECT_EQ(out[i], 4 * 32);
}

TEST_P(MatrixEngine, AWarpgroupHasFourWarps) {
  EngineRig rig(kernel(std::string(kZero) + kWarpgroup + kWgmma + "st.global.f32 [%rd0], %f0;"),
                GetParam());
  auto* out = rig.buffer<float>(0, 96);
  rig.launch("k", 0, {.threads = 96}, {address_of(out)});
  rig.run();
  ASSERT_FALSE(rig.engine().findings().empty());
  EXPECT_EQ(rig.engine().findings()[0].kind, Finding::Kind::kIllegalInstruction);
}

/// Virtual time of a kernel whose warpgroup issues `products` products before `rest`.
Time time_of_warpgroup(int products, const std::string& rest) {
  std::string body = std::string(kZero) + kWarpgroup;
  for (int i = 0; i < products; ++i) body += kWgmma;
  EngineRig rig(kernel(body + rest), {});
  auto* out = rig.buffer<float>(0, 128);
  rig.launch("k", 0, {.threads = 128}, {address_of(out)});
  rig.run();
  EXPECT_TRUE(rig.engine().findings().empty());
  return rig.last_end();
}

/// Virtual time of `products` products, each added to the one before, or to sums of their own.
Time time_of(int products, int warps, bool chained) {
  std::string body = kOnes;
  for (int i = 0; i < products; ++i) {
    std::string text = kMma;
    if (!chained) {
      std::string sums = fmt::format("{{%f{}, %f{}, %f{}, %f{}}}", 4 * (i % 8), 4 * (i % 8) + 1,
                                     4 * (i % 8) + 2, 4 * (i % 8) + 3);
      for (size_t at; (at = text.find("{%f0, %f1, %f2, %f3}")) != std::string::npos;) {
        text.replace(at, 20, sums == "{%f0, %f1, %f2, %f3}" ? "{%f0,%f1,%f2,%f3}" : sums);
      }
    }
    body += text;
  }
  EngineRig rig(kernel(body + "st.global.f32 [%rd0], %f0;"), {});
  auto* out = rig.buffer<float>(0, 1024);
  rig.launch("k", 0, {.threads = static_cast<uint32_t>(32 * warps)}, {address_of(out)});
  rig.run();
  EXPECT_TRUE(rig.engine().findings().empty());
  return rig.last_end();
}

double cycles(Time time) {
  return static_cast<double>(time) / 1000 * value_or_throw(load_profile("h100x8")).sm_clock_ghz;
}

TEST(MatrixTime, AChainTakesTheLatencyOfEachLink) {
  double more = cycles(time_of(64, 1, true) - time_of(32, 1, true));
  EXPECT_NEAR(more, 32 * 33, 32);
}

TEST(MatrixTime, IndependentProductsTakeTheRateOfTheTensorCore) {
  // 2048 multiply-adds at 62 % of 512 a cycle.
  double one = cycles(time_of(192, 1, false) - time_of(64, 1, false));
  EXPECT_NEAR(one, 128 * 2048 / 512.0 / 0.62, 100);
  // Four warps have a tensor core each, eight share them.
  double four = cycles(time_of(192, 4, false) - time_of(64, 4, false));
  double eight = cycles(time_of(192, 8, false) - time_of(64, 8, false));
  EXPECT_NEAR(four, one, 100);
  EXPECT_NEAR(eight, 2 * one, 200);
}

TEST(MatrixTime, AWarpgroupHasTheWholeRateAndWaitsOnlyWhereItSays) {
  std::string commit = "wgmma.commit_group.sync.aligned;\n";
  std::string wait = commit + "wgmma.wait_group.sync.aligned 0;\n";
  // 16 rows, 8 columns and 16 products of a warp at 512 a cycle.
  double more = cycles(time_of_warpgroup(320, wait) - time_of_warpgroup(64, wait));
  EXPECT_NEAR(more, 256 * 16 * 8 * 16 / 512.0, 64);
  // The last group's latency is not waited for where one may be pending.
  double waited = cycles(time_of_warpgroup(1, wait) - time_of_warpgroup(1, ""));
  double pending = cycles(time_of_warpgroup(1, commit + "wgmma.wait_group.sync.aligned 1;\n") -
                          time_of_warpgroup(1, ""));
  EXPECT_GT(waited, 25);
  EXPECT_LT(pending, 10);
}

}  // namespace
}  // namespace cb::sim
