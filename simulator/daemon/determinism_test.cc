// Whatever the real delays of hosts are, virtual times and contents are the same.

#include <gtest/gtest.h>
#include <time.h>

#include <cstring>

#include "base/hash.h"
#include "base/random.h"
#include "simulator/daemon/testing/daemon_rig.h"

namespace cb::sim {
namespace {

constexpr int kRanks = 3;
constexpr int kRounds = 60;

/// Counts up in shared memory of all ranks, so that order shows in what it leaves behind.
constexpr char kMixPtx[] = R"(
.visible .entry mix(.param .u64 memory, .param .u64 factor) {
  .reg .b32 %r<6>; .reg .b64 %rd<4>; .reg .pred %p;
  ld.param.u64 %rd1, [memory];
  ld.param.u32 %r1, [factor];
  mov.u32 %r4, 0;
again:
  ld.volatile.global.u32 %r2, [%rd1];
  mad.lo.u32 %r3, %r2, 1664525, %r1;
  st.volatile.global.u32 [%rd1], %r3;
  add.u32 %r4, %r4, 1;
  setp.lt.u32 %p, %r4, 20;
  @%p bra again;
  ret;
}
)";

/// A random delay before one of three messages.
class Delays {
 public:
  Delays(uint64_t seed, int rank) : random_(seed * 31 + static_cast<uint64_t>(rank)), on_(seed) {}
  void pause() {
    if (on_ == 0 || random_.below(next_++, 3) != 0) return;
    timespec time{0, static_cast<long>(random_.below(next_++, 2'000'000))};
    nanosleep(&time, nullptr);
  }

 private:
  CounterRandom random_;
  uint64_t on_;
  uint64_t next_ = 0;
};

/// Calls drawn from the rank's own stream of numbers, which the delays do not touch.
std::string run_rank(RawHost& host, int rank, uint64_t delay_seed) {
  Delays delays(delay_seed, rank);
  CounterRandom choices(static_cast<uint64_t>(rank) + 17);
  std::string seen;
  uint32_t module = host.load_module(fatbin_of(kMixPtx));
  host.call(Op::kSymAlloc, {4096});
  std::vector<uint64_t> addresses(kRanks);
  std::memcpy(addresses.data(), host.payload().data(), host.payload().size());
  host.post(Op::kStreamCreate, {20, 1, 0, host.device});
  host.post(Op::kEventCreate, {21, 0, host.device});
  for (uint64_t round = 0; round < kRounds; ++round) {
    delays.pause();
    uint64_t stream = choices.below(round * 4, 2) == 0 ? kNullStream : 20;
    uint64_t peer = addresses[choices.below(round * 4 + 1, kRanks)];
    switch (choices.below(round * 4 + 2, 7)) {
      case 0:
        seen += std::to_string(host.now_ns()) + " ";
        break;
      case 1:
        host.launch(module, 0, 1, 1, {peer, round}, stream);
        break;
      case 2:
        seen += std::to_string(host.call(Op::kStreamQuery, {stream, host.device}).status) + " ";
        break;
      case 3:
        host.post(Op::kEventRecord, {21, stream, host.device});
        host.post(Op::kStreamWait, {20, host.device, 21});
        break;
      case 4:
        host.call(Op::kSleep, {choices.below(round * 4 + 3, 20'000), 0});
        break;
      case 5:
        host.post(Op::kMemset, {peer + 4, round, 4, 16, 1, 0, stream, host.device},
                  kCopyAsync | kCopyOneWay);
        break;
      default:
        host.call(Op::kStreamSync, {stream, host.device});
        break;
    }
  }
  delays.pause();
  host.call(Op::kDeviceSync, {host.device});
  host.call(Op::kBarrier);
  seen += sha256_hex(host.read(addresses[static_cast<size_t>(rank)], 128));
  seen += " " + std::to_string(host.now_ns());
  host.post(Op::kControlWait, {0});
  return seen;
}

std::vector<std::string> run_all(uint64_t delay_seed, bool timed) {
  DaemonRig rig({.world_size = kRanks, .timed = timed});
  rig.connect_hosts();
  std::vector<std::string> seen(kRanks);
  rig.each([&](int rank) {
    seen[static_cast<size_t>(rank)] = run_rank(rig.host(rank), rank, delay_seed);
  });
  return seen;
}

TEST(DaemonDeterminism, DelaysOfHostsChangeNothing) {
  for (bool timed : {true, false}) {
    std::vector<std::string> expected = run_all(0, timed);
    EXPECT_NE(expected[0], expected[1]);
    for (uint64_t seed = 1; seed <= 4; ++seed) EXPECT_EQ(run_all(seed, timed), expected);
  }
}

}  // namespace
}  // namespace cb::sim
