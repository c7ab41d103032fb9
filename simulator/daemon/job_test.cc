// Jobs of several ranks: phases, buffers, bootstrap, and how they end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <nlohmann/json.hpp>

#include "simulator/daemon/cuda_error.h"
#include "simulator/daemon/testing/daemon_rig.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

constexpr uint64_t kMicrosecond = 1'000'000;

class DaemonJob : public ::testing::Test {
 protected:
  DaemonJob() : rig_({.world_size = 2}) {}

  /// Hosts that wait in the given phase's control call, with `buffers` of 4 KiB each.
  void set_up(int buffers = 0) {
    rig_.each([&](int rank) {
      for (int at = 0; at < buffers; ++at) {
        addresses_[rank].push_back(
            rig_.rank(rank).allocate("input " + std::to_string(at), 4096, true, false));
      }
    });
    rig_.connect_hosts();
    for (int rank = 0; rank < 2; ++rank) rig_.host(rank).post(Op::kControlWait, {0});
  }
  void await_phase(Phase phase) {
    for (int rank = 0; rank < 2; ++rank) {
      EXPECT_EQ(rig_.host(rank).await().results[0], static_cast<uint64_t>(phase));
    }
  }
  void finish_phase(Phase phase) {
    for (int rank = 0; rank < 2; ++rank) {
      rig_.host(rank).post(Op::kControlWait, {static_cast<uint64_t>(phase)});
    }
  }
  HostEvent event(int rank) {
    std::optional<HostEvent> event = rig_.rank(rank).wait(10'000);
    EXPECT_TRUE(event) << "no event of rank " << rank;
    return event.value_or(HostEvent{});
  }

  DaemonRig rig_;
  std::vector<uint64_t> addresses_[2];
};

TEST_F(DaemonJob, PhasesBeginTogetherAndEndWithTheHostsWords) {
  set_up();
  rig_.start(Phase::kSetup, 3 * kMicrosecond);
  uint64_t times[2];
  rig_.each([&](int rank) {
    EXPECT_EQ(rig_.host(rank).await().results[0], static_cast<uint64_t>(Phase::kSetup));
    times[rank] = rig_.host(rank).now_ns();
    rig_.host(rank).post(Op::kControlWait, {static_cast<uint64_t>(Phase::kSetup), 4}, 0,
                         "out of luck");
  });
  EXPECT_EQ(times[1], times[0] + 3000) << "the skew of the second rank";
  for (int rank = 0; rank < 2; ++rank) {
    HostEvent done = event(rank);
    EXPECT_EQ(done.kind, HostEvent::Kind::kPhaseDone);
    EXPECT_EQ(done.status, 4);
    EXPECT_EQ(done.error, "out of luck");
  }
  rig_.start(Phase::kExit);
  await_phase(Phase::kExit);
  for (int rank = 0; rank < 2; ++rank) rig_.host(rank).post(Op::kBye, {1});
  EXPECT_EQ(event(0).kind, HostEvent::Kind::kGone);
  EXPECT_EQ(event(1).kind, HostEvent::Kind::kGone);
  EXPECT_TRUE(rig_.rank(0).report()["end"].is_null());
}

TEST_F(DaemonJob, GradersMemoryIsWrittenFilledAndCompared) {
  set_up(1);
  RankClient& rank = rig_.rank(0);
  uint64_t address = addresses_[0][0];
  rank.fill(address + 3, 1000, 7, 11);
  EXPECT_FALSE(rank.check_fill(address + 3, 1000, 7, 11));
  EXPECT_FALSE(rank.check_fill(address + 3 + 500, 500, 7, 511)) << "the same stream, further on";
  std::byte zero{};
  std::byte old;
  rank.read(address + 103, {&old, 1});
  zero = ~old;
  rank.write(address + 103, {&zero, 1});
  EXPECT_EQ(rank.check_fill(address + 3, 1000, 7, 11), 100u);
  EXPECT_THROW(rank.write(address + 4095, std::vector<std::byte>(2)), Error);
  EXPECT_THROW(rank.read(0x1000, {&old, 1}), Error);
}

TEST_F(DaemonJob, AStepPublishesItsInputsAndKeepsItsOutputs) {
  set_up(2);
  std::vector<RankClient::SharedBuffer> shared[2];
  rig_.each([&](int rank) { shared[rank] = rig_.rank(rank).share({false, true}); });
  EXPECT_EQ(shared[0][0].addresses, (std::vector<uint64_t>{addresses_[0][0], addresses_[1][0]}));
  EXPECT_EQ(shared[0][1].multicast, shared[1][1].multicast);
  EXPECT_NE(shared[0][1].multicast, 0u);

  rig_.each([&](int rank) {
    RankClient::PhasePlan plan;
    plan.phase = static_cast<uint32_t>(Phase::kRun);
    plan.publish.push_back({addresses_[rank][0], std::vector<std::byte>(16, std::byte{'i'})});
    plan.publish_fills.push_back({{addresses_[rank][1], 64}, 99, 0});
    plan.snapshot.push_back({addresses_[rank][1], 32});
    plan.overwrite.push_back({{addresses_[rank][1], 32}, 5, 0});
    rig_.rank(rank).go(plan);
  });
  await_phase(Phase::kRun);
  rig_.each([&](int rank) {
    // Each writes what it was given into the output of the other.
    uint64_t from = addresses_[rank][0], to = addresses_[1 - rank][1];
    EXPECT_EQ(rig_.host(rank)
                  .call(Op::kMemcpy, {to, from, 16, kNullStream, rig_.host(rank).device})
                  .status,
              0);
    rig_.host(rank).post(Op::kAllgather, {}, 0, "x");
    EXPECT_EQ(rig_.host(rank).await().status, kCbPhase) << "no bootstrap inside a step";
    EXPECT_EQ(rig_.host(rank).read(addresses_[rank][0], 2), "ii");
  });
  finish_phase(Phase::kRun);
  StepTimes times[2];
  rig_.each([&](int rank) {
    EXPECT_EQ(event(rank).kind, HostEvent::Kind::kPhaseDone);
    times[rank] = rig_.rank(rank).settle(10 * kMicrosecond);
    auto snapshot = rig_.rank(rank).snapshot(0, 0, 32);
    EXPECT_EQ(snapshot[15], std::byte{'i'});
    EXPECT_NE(snapshot[16], std::byte{'i'});
    EXPECT_FALSE(rig_.rank(rank).check_fill(addresses_[rank][1], 32, 5, 0)) << "overwritten";
    EXPECT_FALSE(rig_.rank(rank).check_fill(addresses_[rank][1] + 32, 32, 99, 32));
  });
  EXPECT_EQ(times[0].start_ps, times[0].go_ps);
  EXPECT_GT(times[0].returned_ps, times[0].go_ps);
  EXPECT_FALSE(times[0].late_work);
  EXPECT_EQ(times[0].host_bytes, 2u);
  EXPECT_EQ(times[0].early_access, "");
}

TEST_F(DaemonJob, WorkAfterTheStepIsLate) {
  set_up();
  rig_.start(Phase::kRun);
  await_phase(Phase::kRun);
  rig_.each([&](int rank) {
    RawHost& host = rig_.host(rank);
    uint64_t memory = host.malloc(256 << 20);
    if (rank == 1) {
      host.post(Op::kMemset, {memory, 1, 1, 256 << 20, 1, 0, kNullStream, host.device},
                kCopyAsync | kCopyOneWay);
    }
  });
  finish_phase(Phase::kRun);
  StepTimes times[2];
  rig_.each([&](int rank) { times[rank] = rig_.rank(rank).settle(1000 * kMicrosecond); });
  EXPECT_FALSE(times[0].late_work);
  EXPECT_TRUE(times[1].late_work);
  EXPECT_GT(times[1].idle_ps, times[1].returned_ps);
}

TEST_F(DaemonJob, ABufferTouchedBeforeTheStepIsAFinding) {
  set_up(1);
  rig_.start(Phase::kSetup);
  await_phase(Phase::kSetup);
  rig_.host(0).post(Op::kMemcpy, {0, addresses_[0][0], 16, kNullStream, 0}, kCopyDstPageable);
  rig_.host(1).post(Op::kControlWait, {static_cast<uint64_t>(Phase::kSetup)});
  EXPECT_NE(rig_.host(0).await().status, 0);
  EXPECT_EQ(event(0).kind, HostEvent::Kind::kFinding);
  EXPECT_THAT(rig_.rank(0).settle(0).early_access, HasSubstr("input 0 of rank 0"));
}

TEST_F(DaemonJob, TheBootstrapGathersAndAllocates) {
  set_up();
  rig_.start(Phase::kSetup);
  await_phase(Phase::kSetup);
  uint64_t addresses[2][2];
  rig_.each([&](int rank) {
    RawHost& host = rig_.host(rank);
    EXPECT_EQ(host.call(Op::kAllgather, {}, 0, rank == 0 ? "ab" : "cd").status, 0);
    EXPECT_EQ(host.payload(), "abcd");
    EXPECT_EQ(host.call(Op::kBarrier).status, 0);
    Reply allocated = host.call(Op::kSymAlloc, {1000});
    EXPECT_EQ(allocated.status, 0);
    EXPECT_NE(allocated.results[0], 0u) << "multicast";
    ASSERT_EQ(host.payload().size(), sizeof addresses[rank]);
    std::memcpy(addresses[rank], host.payload().data(), sizeof addresses[rank]);
    EXPECT_EQ(host.read(addresses[rank][1 - rank], 3), std::string(3, '\0'));
    EXPECT_EQ(host.call(Op::kIpcGetMem, {addresses[rank][rank]}).status, kCudaInvalidValue);
    EXPECT_EQ(host.call(Op::kAllgather, {}, 0, rank == 0 ? "a" : "bc").status, kCbInvalid);
    EXPECT_EQ(host.call(Op::kSymAlloc, {uint64_t{1} << 40}).status, kCbMemory);
  });
  EXPECT_EQ(addresses[0][1], addresses[1][1]);
}

TEST_F(DaemonJob, MemoryGoesFromProcessToProcessByTokenOnly) {
  set_up();
  rig_.start(Phase::kSetup);
  await_phase(Phase::kSetup);
  std::string tokens[2];
  rig_.each([&](int rank) {
    RawHost& host = rig_.host(rank);
    uint64_t memory = host.malloc(64);
    host.write(memory, std::string(64, rank == 0 ? 'a' : 'b'));
    Reply token = host.call(Op::kIpcGetMem, {memory});
    host.call(Op::kAllgather, {}, 0,
              std::string(reinterpret_cast<char*>(token.results), 16) +
                  std::string(reinterpret_cast<char*>(&memory), 8));
    uint64_t all[6];
    std::memcpy(all, host.payload().data(), sizeof all);
    uint64_t* theirs = all + 3 * (1 - rank);
    EXPECT_EQ(host.call(Op::kMemcpy, {memory, theirs[2], 8, 0, host.device}).status,
              kCudaInvalidValue)
        << "not opened";
    EXPECT_EQ(host.call(Op::kIpcOpenMem, {token.results[0], token.results[1], host.device}).status,
              kCudaDeviceUninitialized);
    Reply opened = host.call(Op::kIpcOpenMem, {theirs[0], theirs[1], host.device});
    EXPECT_EQ(opened.status, 0);
    EXPECT_EQ(host.read(opened.results[0], 1), rank == 0 ? "b" : "a");
    EXPECT_EQ(host.call(Op::kIpcCloseMem, {opened.results[0]}).status, 0);
    EXPECT_EQ(host.call(Op::kMemcpy, {memory, theirs[2], 8, 0, host.device}).status,
              kCudaInvalidValue);
  });
}

TEST_F(DaemonJob, HostsThatWaitForEachOtherAreADeadlock) {
  set_up();
  rig_.start(Phase::kSetup);
  await_phase(Phase::kSetup);
  rig_.host(0).post(Op::kBarrier);
  rig_.host(1).post(Op::kControlWait, {static_cast<uint64_t>(Phase::kSetup)});
  EXPECT_EQ(event(1).kind, HostEvent::Kind::kPhaseDone);
  EXPECT_EQ(event(0).kind, HostEvent::Kind::kDeadlock);
  EXPECT_EQ(event(1).kind, HostEvent::Kind::kDeadlock);
  EXPECT_THAT(dump_json(rig_.rank(0).report()["hosts"]), HasSubstr("cb_barrier"));
}

TEST_F(DaemonJob, AStepHasALimitOfVirtualTime) {
  set_up();
  rig_.each([&](int rank) {
    RankClient::PhasePlan plan;
    plan.phase = static_cast<uint32_t>(Phase::kRun);
    plan.virtual_limit_ps = 500 * kMicrosecond;
    rig_.rank(rank).go(plan);
  });
  await_phase(Phase::kRun);
  rig_.host(0).post(Op::kSleep, {100'000, 0});
  rig_.host(1).post(Op::kSleep, {10'000'000, 0});
  EXPECT_EQ(rig_.host(0).await().status, 0);
  rig_.host(0).post(Op::kControlWait, {static_cast<uint64_t>(Phase::kRun)});
  EXPECT_EQ(event(0).kind, HostEvent::Kind::kPhaseDone);
  EXPECT_EQ(event(0).kind, HostEvent::Kind::kTimeLimit);
  EXPECT_EQ(event(1).kind, HostEvent::Kind::kTimeLimit);
}

TEST_F(DaemonJob, TheFirstDeathEndsTheJobForAll) {
  set_up();
  rig_.start(Phase::kSetup);
  await_phase(Phase::kSetup);
  rig_.host(1).close();
  EXPECT_EQ(event(0).kind, HostEvent::Kind::kGone);
  EXPECT_EQ(event(1).kind, HostEvent::Kind::kGone);
  Json end = rig_.rank(0).report()["end"];
  EXPECT_EQ(end["rank"], 1);
}

TEST_F(DaemonJob, AnotherJobFollowsWhenAllIsReleased) {
  for (int round = 0; round < 3; ++round) {
    for (auto& list : addresses_) list.clear();
    set_up(1);
    rig_.start(Phase::kSetup);
    await_phase(Phase::kSetup);
    rig_.host(0).close();
    EXPECT_EQ(event(0).kind, HostEvent::Kind::kGone);
    EXPECT_EQ(event(1).kind, HostEvent::Kind::kGone);
    rig_.each([&](int rank) { rig_.rank(rank).release_all(); });
  }
}

}  // namespace
}  // namespace cb::sim
