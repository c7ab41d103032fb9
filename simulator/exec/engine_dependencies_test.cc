// Kernels that overlap: when the second one may start, and what it waits for.

#include <gtest/gtest.h>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

class EngineDependencies : public ::testing::TestWithParam<EngineRig::Mode> {};
INSTANTIATE_TEST_SUITE_P(Modes, EngineDependencies, ::testing::ValuesIn(EngineRig::all_modes()));

constexpr char kKernels[] = R"(
.visible .entry first(.param .u64 out)
{
  .reg .pred %p<4>; .reg .b32 %r<10>; .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [out]; mov.u32 %r1, %ctaid.x; mul.wide.u32 %rd2, %r1, 4;
  add.u64 %rd3, %rd1, %rd2;
  setp.eq.u32 %p1, %r1, 3;
  @!%p1 griddepcontrol.launch_dependents;
  @!%p1 griddepcontrol.launch_dependents;
  mov.u32 %r2, 0;
again:
  nanosleep.u32 1000;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 20;
  @%p2 bra again;
  // The last block says so late, the others long before their ends.
  @%p1 griddepcontrol.launch_dependents;
  @%p1 bra end;
late:
  nanosleep.u32 1000;
  add.u32 %r2, %r2, 1; setp.lt.u32 %p2, %r2, 60;
  @%p2 bra late;
end:
  st.global.u32 [%rd3], 9;
  ret;
}
.visible .entry second(.param .u64 out, .param .u64 in)
{
  .reg .b32 %r<10>; .reg .b64 %rd<10>;
  ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in];
  mov.u32 %r5, %tid.x; mul.wide.u32 %rd3, %r5, 4; add.u64 %rd1, %rd1, %rd3;
  ld.relaxed.gpu.global.u32 %r1, [%rd2];
  griddepcontrol.wait;
  ld.relaxed.gpu.global.u32 %r2, [%rd2];
  mad.lo.u32 %r3, %r1, 100, %r2; add.u32 %r3, %r3, 1000;
  st.global.u32 [%rd1], %r3;
  ret;
}
.visible .entry silent()
{
  ret;
}
)";

TEST_P(EngineDependencies, AKernelWaitsForTheOneThatItOverlapsWith) {
  EngineRig rig(kKernels, GetParam());
  auto* in = rig.buffer<uint32_t>(0, 4);
  auto* out = rig.buffer<uint32_t>(0, 64);
  uint64_t second = 0;
  int calls = 0;
  Time let_at = 0;
  rig.launch("first", 0,
             {.blocks = 4,
              .threads = 32,
              .on_launch_dependents =
                  [&](Time time) {
                    ++calls;
                    let_at = time;
                    second = rig.launch("second", 0, {.threads = 64, .has_dependencies = true},
                                        {address_of(out), address_of(in)});
                  }},
             {address_of(in)});
  rig.run();
  ASSERT_EQ(calls, 1);
  EXPECT_GT(let_at, Time{20'000'000});
  EXPECT_GT(rig.last_end(), let_at + 20'000'000);
  EXPECT_EQ(rig.running(), 1);
  EXPECT_EQ(out[0], 0u);
  auto waiters = rig.engine().waiters(8);
  ASSERT_EQ(waiters.size(), 2u);
  EXPECT_EQ(waiters[0].waits_for, "the end of the kernels before it in its stream");
  rig.engine().dependencies_met(second);
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  // It began before the first kernel wrote, and read again after it had.
  for (int i = 0; i < 64; ++i) EXPECT_EQ(out[i], 1009u);
  rig.engine().dependencies_met(second);
}

TEST_P(EngineDependencies, ABlockThatEndsNeedNotSaySo) {
  EngineRig rig(kKernels, GetParam());
  int calls = 0;
  rig.launch("silent", 0,
             {.blocks = 300, .threads = 64, .on_launch_dependents = [&](Time) { ++calls; }}, {});
  rig.run();
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(rig.running(), 0);
}

TEST_P(EngineDependencies, WithoutDependenciesNothingIsWaitedFor) {
  EngineRig rig(kKernels, GetParam());
  auto* in = rig.buffer<uint32_t>(0, 4);
  auto* out = rig.buffer<uint32_t>(0, 32);
  in[0] = 4;
  rig.launch("second", 0, {}, {address_of(out), address_of(in)});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  EXPECT_EQ(out[31], 1404u);
}

}  // namespace
}  // namespace cb::sim
