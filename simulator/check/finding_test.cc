#include "simulator/check/finding.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace cb::sim {
namespace {

TEST(FindingTest, EveryKindHasAWordOfItsOwnAndAnError) {
  std::set<std::string> words;
  int num_kinds = static_cast<int>(Finding::Kind::kLimit) + 1;
  for (int i = 0; i < num_kinds; ++i) {
    auto kind = static_cast<Finding::Kind>(i);
    EXPECT_STRNE(to_string(kind), "unknown") << i;
    words.insert(to_string(kind));
    EXPECT_GT(cuda_error_of(kind), 0) << to_string(kind);
  }
  EXPECT_EQ(words.size(), static_cast<size_t>(num_kinds));
}

TEST(FindingTest, ErrorsAreThoseOfHardware) {
  EXPECT_EQ(cuda_error_of(Finding::Kind::kOutOfBounds), 700);
  EXPECT_EQ(cuda_error_of(Finding::Kind::kUseAfterFree), 700);
  EXPECT_EQ(cuda_error_of(Finding::Kind::kAssert), 710);
  EXPECT_EQ(cuda_error_of(Finding::Kind::kMisaligned), 716);
  EXPECT_EQ(cuda_error_of(Finding::Kind::kTrap), 719);
}

}  // namespace
}  // namespace cb::sim
