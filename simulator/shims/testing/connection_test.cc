// Order of requests, threads and the end of the connection.

#include <gtest/gtest.h>

#include <map>

#include "base/process.h"
#include "simulator/shims/testing/fake_daemon.h"

namespace cb::sim {
namespace {

TEST(ShimConnection, HelloComesFirstAndGoodbyeOfTheProcessLast) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("memory");
  EXPECT_TRUE(process.status.success());
  auto requests = daemon.requests();
  ASSERT_GE(requests.size(), 2u);
  EXPECT_EQ(requests.front().op, Op::kHello);
  EXPECT_EQ(requests.front().args[0], kProtocolVersion);
  EXPECT_EQ(requests.back().op, Op::kBye);
  EXPECT_EQ(requests.back().args[0], 1u);
  for (size_t at = 0; at < requests.size(); ++at) EXPECT_EQ(requests[at].sequence, at + 1);
}

TEST(ShimConnection, OneWayRequestsGoOutInOrderWithoutWaiting) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("one_way");
  EXPECT_EQ(process.standard_output, "create 0\ncreate 0\nsync 0\ndestroy 0\ndestroy 0\n");
  auto requests = daemon.requests();
  ASSERT_EQ(requests.size(), 1u + 2u + 100u + 1u + 2u + 1u);
  EXPECT_EQ(requests[1].op, Op::kStreamCreate);
  EXPECT_EQ(requests[2].op, Op::kEventCreate);
  uint64_t stream = requests[1].args[0], event = requests[2].args[0];
  for (size_t at = 3; at < 103; ++at) {
    EXPECT_EQ(requests[at].op, Op::kEventRecord);
    EXPECT_EQ(requests[at].args[0], event);
    EXPECT_EQ(requests[at].args[1], stream);
  }
  EXPECT_EQ(requests[103].op, Op::kStreamSync);
}

TEST(ShimConnection, AfterTheDaemonsDeathEveryCallFailsAndTheProgramCanEnd) {
  FakeDaemon daemon;
  daemon.die_at(Op::kMalloc, 3);
  CompletedProcess process = daemon.run("many_calls");
  EXPECT_FALSE(process.timed_out);
  EXPECT_TRUE(process.status.success()) << process.status.describe();
  EXPECT_EQ(process.standard_output,
            "malloc 0\nmalloc 0\nmalloc 802\nmalloc 802\nmalloc 802\nstream 802\nlaunch 802\n"
            "memcpy 802\nlast 802\n");
  EXPECT_NE(process.standard_error.find("the connection is lost: the simulator closed it"),
            std::string::npos);
}

TEST(ShimConnection, TheDaemonsDeathFreesThreadsThatWaitForIt) {
  FakeDaemon daemon;
  daemon.die_at(Op::kDeviceSync, 3);
  daemon.answer(Op::kDeviceSync, [&daemon](Answering& answering) {
    // Never answered: the request stays open until the third one kills the daemon.
    while (daemon.requests(Op::kDeviceSync).size() < 3) std::this_thread::yield();
    answering.reply.sequence = 0;
  });
  CompletedProcess process = daemon.run("blocked_threads");
  EXPECT_FALSE(process.timed_out);
  EXPECT_EQ(process.standard_output, "sync 802\nsync 802\nsync 802\n");
}

TEST(ShimConnection, AReplyToAnotherRequestEndsTheConnection) {
  FakeDaemon daemon;
  daemon.answer(Op::kMalloc, [](Answering& answering) { answering.reply.sequence += 1; });
  CompletedProcess process = daemon.run("many_calls");
  EXPECT_NE(process.standard_error.find("a reply answers another request"), std::string::npos);
  EXPECT_EQ(process.standard_output.find("malloc 802\n"), 0u);
}

TEST(ShimConnection, AnotherVersionIsRefused) {
  FakeDaemon daemon;
  daemon.answer(Op::kHello, [](Answering& answering) { answering.payload[0] ^= 0x40; });
  CompletedProcess process = daemon.run("many_calls");
  EXPECT_NE(process.standard_error.find("another version"), std::string::npos);
  EXPECT_EQ(process.standard_output.find("malloc 802\n"), 0u);
}

TEST(ShimConnection, EveryThreadHasItsOwnConnectionAndEndsIt) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("threads");
  EXPECT_EQ(process.standard_output, "thread 0\nthread 0\nthread 0\nthread 0\ndevice 0\n");
  std::map<uint32_t, std::vector<SeenRequest>> by_thread;
  for (const SeenRequest& request : daemon.requests()) by_thread[request.thread].push_back(request);
  ASSERT_EQ(by_thread.size(), 5u);
  for (auto& [thread, requests] : by_thread) {
    EXPECT_EQ(requests.front().op, Op::kHello);
    EXPECT_EQ(requests.back().op, Op::kBye);
    EXPECT_EQ(requests.back().args[0], thread == 0 ? 1u : 0u);
    for (size_t at = 0; at < requests.size(); ++at) EXPECT_EQ(requests[at].sequence, at + 1);
    size_t mallocs = 0;
    for (const SeenRequest& request : requests) mallocs += request.op == Op::kMalloc;
    EXPECT_EQ(mallocs, thread == 0 ? 0u : 50u);
  }
  EXPECT_EQ(daemon.requests(Op::kThreadNew).size(), 4u);
  EXPECT_EQ(daemon.requests(Op::kThreadJoin).size(), 4u);
}

TEST(ShimConnection, AMainThreadThatLeavesEndsItsOwnConnectionOnly) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("main_leaves");
  EXPECT_TRUE(process.status.success()) << process.status.describe();
  EXPECT_EQ(process.standard_output, "worker 0\n");
  auto goodbyes = daemon.requests(Op::kBye);
  ASSERT_EQ(goodbyes.size(), 2u);
  EXPECT_NE(goodbyes[0].thread, goodbyes[1].thread);
  EXPECT_EQ(goodbyes[0].args[0] + goodbyes[1].args[0], 0u);
}

TEST(ShimConnection, TheChildOfAForkCannotUseIt) {
  FakeDaemon daemon;
  CompletedProcess process = daemon.run("fork");
  EXPECT_EQ(process.standard_output, "before 0\nchild 3\nparent 0\n");
  EXPECT_EQ(daemon.requests(Op::kBye).size(), 1u);
}

TEST(ShimConnection, WithoutTheSimulatorThereIsNoDevice) {
  ProcessOptions options;
  options.argv = {COMMBENCH_SHIM_SCENARIOS, "many_calls"};
  CompletedProcess process = run_process(options, 60'000);
  EXPECT_EQ(process.standard_output.find("malloc 100\n"), 0u);
  EXPECT_NE(process.standard_error.find("COMMBENCH_SIM_FD"), std::string::npos);
  EXPECT_TRUE(process.status.success());
}

}  // namespace
}  // namespace cb::sim
