// Host functions and stream memory operations: what the daemon promises, and what it refuses.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "simulator/daemon/cuda_error.h"
#include "simulator/daemon/testing/daemon_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

std::string bytes_of(std::initializer_list<StreamMemoryOp> operations) {
  return {reinterpret_cast<const char*>(operations.begin()),
          operations.size() * sizeof(StreamMemoryOp)};
}

class StreamWork : public ::testing::Test {
 protected:
  StreamWork() : rig_({.world_size = 1}) {
    rig_.connect_hosts();
    // A thread of its own runs the functions.
    host().call(Op::kThreadNew);
    server_ = RawHost(std::move(host().fds().at(0)), std::move(host().fds().at(1)));
    // A thread in host code comes before the other one: let it wait.
    host().post(Op::kSleep, {1'000'000});
    server_.hello();
    server_.post(Op::kHostFunctionNext);
    EXPECT_EQ(host().await().status, kCudaSuccess);
  }
  RawHost& host() { return rig_.host(0); }
  int enqueue(std::initializer_list<StreamMemoryOp> operations) {
    return host().call(Op::kStreamMemory, {kNullStream, 0}, 0, bytes_of(operations)).status;
  }
  DaemonRig rig_;
  RawHost server_;
};

TEST_F(StreamWork, FunctionsAreNamedInTheOrderOfTheirStream) {
  host().post(Op::kHostFunction, {kNullStream, 0, 11, 0});
  host().post(Op::kHostFunction, {kNullStream, 0, 12, 0});
  host().post(Op::kStreamSync, {kNullStream, 0});
  Reply first = server_.await();
  EXPECT_EQ(first.results[0], 11u);
  EXPECT_EQ(first.results[1], 0u);
  EXPECT_EQ(server_.call(Op::kHostFunctionNext).results[0], 12u);
  // The stream is done when the second function is, which the next question says.
  server_.post(Op::kHostFunctionNext);
  EXPECT_EQ(host().await().status, kCudaSuccess);
}

TEST_F(StreamWork, OneThreadOnlyRunsFunctions) {
  EXPECT_EQ(host().call(Op::kHostFunctionNext).status, -1);
}

TEST_F(StreamWork, CallbacksAreToldOfABrokenContextAndFunctionsAreDropped) {
  uint64_t word = host().malloc(8);
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWrite, 0, word, 1}}), kCudaSuccess);
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWaitEqual, 0, word, 2}}), kCudaSuccess);
  host().post(Op::kHostFunction, {kNullStream, 0, 21, 0});
  host().post(Op::kHostFunction, {kNullStream, 0, 22, 1});
  // A wait for an event that does not exist breaks the context.
  host().post(Op::kStreamWait, {kNullStream, 0, 999});
  host().post(Op::kSleep, {1'000'000});
  Reply told = server_.await();
  EXPECT_EQ(told.results[0], 22u);
  EXPECT_EQ(told.results[1], static_cast<uint64_t>(kCudaInvalidResourceHandle));
  server_.post(Op::kHostFunctionNext);
  EXPECT_EQ(host().await().status, kCudaSuccess);
}

TEST_F(StreamWork, AWaitEndsWhenAnotherStreamWrites) {
  uint64_t word = host().malloc(8);
  host().write(word, std::string(8, '\0'));
  host().post(Op::kStreamCreate, {100, 1, 0, 0});
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWaitGreaterOrEqual, 1, word, 5}}), kCudaSuccess);
  EXPECT_EQ(host().call(Op::kStreamQuery, {kNullStream, 0}).status, kCudaNotReady);
  std::string five = bytes_of({{StreamMemoryOp::kWrite, 1, word, 5}});
  EXPECT_EQ(host().call(Op::kStreamMemory, {100, 0}, 0, five).status, kCudaSuccess);
  EXPECT_EQ(host().call(Op::kStreamSync, {kNullStream, 0}).status, kCudaSuccess);
}

TEST_F(StreamWork, AWaitThatNobodyEndsIsADeadlockThatNamesTheWord) {
  uint64_t word = host().malloc(8);
  host().write(word, std::string(8, '\0'));
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWaitEqual, 0, word + 4, 5}}), kCudaSuccess);
  host().post(Op::kStreamSync, {kNullStream, 0});
  std::optional<HostEvent> event = rig_.rank(0).wait(5000);
  ASSERT_TRUE(event);
  EXPECT_EQ(event->kind, HostEvent::Kind::kDeadlock);
  Json report = rig_.rank(0).report();
  ASSERT_EQ(report["streams"].size(), 1u);
  EXPECT_THAT(report["streams"][0]["what"].get<std::string>(),
              HasSubstr("waits for 4 bytes at device memory of rank 0 + 4"));
  // The thread that runs functions is not what the job waits for.
  EXPECT_EQ(report["hosts"].size(), 1u);
}

TEST_F(StreamWork, WordsMustBeAlignedAndTheProcesssOwn) {
  uint64_t word = host().malloc(8);
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWrite, 0, word + 2, 0}}), kCudaInvalidValue);
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWrite, 1, word + 4, 0}}), kCudaInvalidValue);
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWrite, 0, word + 8, 0}}), kCudaInvalidValue);
  EXPECT_EQ(enqueue({{StreamMemoryOp::kWrite, 0, 4096, 0}}), kCudaInvalidValue);
}

TEST_F(StreamWork, OperationsOfAnotherSizeBreakTheProtocol) {
  EXPECT_EQ(host().call(Op::kStreamMemory, {kNullStream, 0}, 0, "short").status, -1);
}

TEST_F(StreamWork, UnknownOperationsBreakTheProtocol) {
  EXPECT_EQ(enqueue({{StreamMemoryOp::kLastKind + 1, 0, 0, 0}}), -1);
}

}  // namespace
}  // namespace cb::sim
