// Threads, clocks and waits in virtual time, and the bootstrap of commbench-host.

#include <gtest/gtest.h>

#include "simulator/shims/testing/fake_daemon.h"

namespace cb::sim {
namespace {

TEST(ShimHost, ClocksAndSleepsAreVirtual) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("time");
  EXPECT_FALSE(process.timed_out);
  EXPECT_EQ(process.standard_output,
            "advances 1\nusleep 1500\nsleep_for 3600\nuntil 100\npoll 0 after 20\nready 1\n"
            "year 2026\n");
}

TEST(ShimHost, TimedWaitsEndAtTheirDeadlineOrWhenSignalled) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("timed_waits");
  EXPECT_FALSE(process.timed_out);
  EXPECT_EQ(process.standard_output,
            "timeout 1 after 5\nwoken 1\nposted 0\nnot_posted -1\nlocked 0\n");
}

TEST(ShimHost, TheBootstrapGoesThroughTheDaemon) {
  FakeDaemon daemon;
  daemon.answer(Op::kControlWait, [](Answering& answering) {
    answering.reply.results[0] = answering.request.args[0] == 0 ? 1 : 4;
  });
  daemon.answer(Op::kSymAlloc, [](Answering& answering) {
    uint64_t addresses[2] = {0xa000, 0xb000};
    answering.payload.assign(reinterpret_cast<char*>(addresses), sizeof addresses);
    answering.reply.results[0] = 0xc000;
  });
  CompletedProcess process = daemon.run("bootstrap");
  EXPECT_EQ(process.standard_output,
            "phase 1\nallgather 0 abc abc\nwrong_world 1\nbarrier 0\n"
            "sym_alloc 0 a000 b000 c000\nphase 4\n");
  auto waits = daemon.requests(Op::kControlWait);
  ASSERT_EQ(waits.size(), 2u);
  EXPECT_EQ(waits[1].args[1], 4u);
  EXPECT_EQ(waits[1].payload, "it broke");
}

TEST(ShimHost, WithoutTheDaemonTheHostIsToldToExit) {
  FakeDaemon daemon;
  daemon.die_at(Op::kControlWait);
  CompletedProcess process = daemon.run("bootstrap");
  EXPECT_TRUE(process.status.success());
  EXPECT_EQ(process.standard_output,
            "phase 4\nallgather 7  \nwrong_world 1\nbarrier 7\nsym_alloc 7 0 0 0\nphase 4\n");
}

}  // namespace
}  // namespace cb::sim
