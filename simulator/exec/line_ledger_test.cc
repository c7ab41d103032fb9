#include "simulator/exec/line_ledger.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "simulator/exec/engine_rig.h"

namespace cb::sim {
namespace {

std::string kernel(const std::string& body) {
  return ".visible .entry k(.param .u64 a, .param .u64 b)\n{\n"
         ".reg .pred %p<4>; .reg .b32 %r<20>; .reg .b64 %rd<8>; .shared .align 4 .b8 tile[128];\n"
         "ld.param.u64 %rd1, [a];\nld.param.u64 %rd2, [b];\n"
         "mov.u32 %r1, %tid.x;\nmov.u32 %r2, %ctaid.x;\nmul.wide.u32 %rd3, %r1, 4;\n"
         "add.s64 %rd1, %rd1, %rd3;\n" +
         body + "\nret;\n}\n";
}

struct Seen {
  Json profile;
  Time end = 0;
  EngineStats stats;
};

/// `a` lies on rank `owner`, `b` on rank 0, which runs the kernel.
Seen run(const std::string& body, const EngineRig::Shape& shape, int owner = 0,
         bool counted = true) {
  LineLedger ledger;
  EngineRig rig(kernel(body), {.timed = true, .ledger = counted ? &ledger : nullptr});
  auto* a = rig.buffer<uint32_t>(owner, 4096);
  auto* b = rig.buffer<uint32_t>(0, 4096);
  rig.launch("k", 0, shape, {address_of(a), address_of(b)});
  rig.run();
  EXPECT_EQ(rig.running(), 0);
  return {ledger.to_json(), rig.last_end(), rig.engine().stats(0)};
}

uint64_t stall_time(const Json& profile, Stall stall) {
  uint64_t time = 0;
  for (const Json& line : profile.at("kernels").at(0).at("lines")) {
    time += line.at("stalls").value(to_string(stall), uint64_t{0});
  }
  return time;
}

constexpr char kLoad[] = "ld.global.u32 %r3, [%rd1];\nadd.u32 %r4, %r3, 1;\n";
constexpr char kSpin[] = R"(
  setp.ne.u32 %p1, %r2, 0;
  @%p1 bra writer;
wait:
  ld.acquire.gpu.global.u32 %r3, [%rd2];
  setp.eq.u32 %p2, %r3, 0;
  @%p2 bra wait;
  bra done;
writer:
  nanosleep.u32 20000;
  st.release.gpu.global.u32 [%rd2], 1;
done:)";

TEST(LineLedgerTest, LinesTogetherAreTheTimeOfTheWarp) {
  Seen seen = run(kLoad, {.blocks = 1, .threads = 32});
  EXPECT_EQ(seen.profile.at("time_ps").get<Time>(), seen.end);
  uint64_t lines = 0;
  for (const Json& line : seen.profile.at("kernels").at(0).at("lines")) {
    uint64_t stalls = 0;
    for (const auto& [name, time] : line.at("stalls").items()) stalls += time.get<uint64_t>();
    EXPECT_EQ(line.at("time_ps").get<uint64_t>(), stalls);
    lines += stalls;
  }
  EXPECT_EQ(lines, seen.end);
}

TEST(LineLedgerTest, InstructionsAreThoseOfTheStatistics) {
  Seen seen = run(kSpin, {.blocks = 2, .threads = 64});
  uint64_t warps = 0, lanes = 0;
  for (const Json& line : seen.profile.at("kernels").at(0).at("lines")) {
    warps += line.at("instructions").get<uint64_t>();
    lanes += line.at("lane_instructions").get<uint64_t>();
  }
  EXPECT_EQ(warps, seen.stats.warp_instructions);
  EXPECT_GT(lanes, warps);
}

TEST(LineLedgerTest, AnOperandFromAnotherDeviceIsARemoteStall) {
  Seen far = run(kLoad, {.blocks = 1, .threads = 32}, 1);
  Seen near = run(kLoad, {.blocks = 1, .threads = 32}, 0);
  EXPECT_GT(stall_time(far.profile, Stall::kMemoryRemote), far.end / 2);
  EXPECT_EQ(stall_time(near.profile, Stall::kMemoryRemote), 0u);
  EXPECT_GT(stall_time(near.profile, Stall::kMemoryLocal), near.end / 2);
  uint64_t bytes = 0;
  for (const Json& line : far.profile.at("kernels").at(0).at("lines")) {
    for (const Json& link : line.at("bytes").at("links")) {
      EXPECT_EQ(link.at("from"), 1);
      EXPECT_EQ(link.at("to"), 0);
      bytes += link.at("bytes").get<uint64_t>();
    }
  }
  EXPECT_EQ(bytes, 128u);
}

TEST(LineLedgerTest, WarpsThatComeEarlyStallAtTheBarrier) {
  Seen seen =
      run("setp.ge.u32 %p1, %r1, 32;\n@%p1 bra meet;\nnanosleep.u32 20000;\nmeet:\nbar.sync 0;\n",
          {.blocks = 1, .threads = 64});
  EXPECT_GT(stall_time(seen.profile, Stall::kBarrier), 5'000'000u);
}

TEST(LineLedgerTest, ParkedLoopsSpin) {
  Seen seen = run(kSpin, {.blocks = 2, .threads = 32});
  EXPECT_GT(stall_time(seen.profile, Stall::kSpin), seen.end / 2);
}

TEST(LineLedgerTest, CountingChangesNoTimeAndIsDeterministic) {
  EngineRig::Shape shape{.blocks = 2, .threads = 64};
  Seen first = run(kSpin, shape), second = run(kSpin, shape);
  EXPECT_EQ(dump_json(first.profile), dump_json(second.profile));
  Seen bare = run(kSpin, shape, 0, false);
  EXPECT_EQ(bare.end, first.end);
  EXPECT_TRUE(bare.profile.at("kernels").empty());
}

}  // namespace
}  // namespace cb::sim
