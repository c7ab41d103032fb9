#include <gtest/gtest.h>

#include "simulator/daemon/testing/protocol_fuzz.h"

namespace cb::sim {
namespace {

TEST(DaemonFuzz, DamagedMessagesHarmNoOtherRank) {
  for (uint64_t seed = 1; seed <= 4; ++seed) EXPECT_EQ(fuzz_protocol(seed, 200), "");
}

}  // namespace
}  // namespace cb::sim
