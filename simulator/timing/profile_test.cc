#include "simulator/timing/profile.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <string>

#include "base/file.h"
#include "simulator/protocol/occupancy.h"

namespace cb::sim {
namespace {

using ::testing::HasSubstr;

std::string shipped(const std::string& name) {
  std::string path = std::string(COMMBENCH_SOURCE_DIR) + "/simulator/profiles/" + name + ".yaml";
  return value_or_throw(read_file(path));
}

/// Loads `text` as a file; the message of the error, or nothing.
std::string error_of(const std::string& text) {
  TempDir folder("profile");
  std::string path = folder.path() + "/mine.yaml";
  write_file(path, text);
  Result<Profile> profile = load_profile(path);
  return profile ? "" : profile.error().message();
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  size_t at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(ProfileTest, EveryShippedProfileLoads) {
  EXPECT_THAT(profile_names(), testing::ElementsAre("a100x8", "h100x8", "h100x8-2n", "h200x8"));
  for (const std::string& name : profile_names()) {
    auto profile = load_profile(name);
    ASSERT_TRUE(profile) << profile.error().what();
    EXPECT_EQ(profile->name, name);
    EXPECT_EQ(profile->devices_per_node, 8);
    EXPECT_EQ(profile->hash.size(), 64u);
    EXPECT_EQ(profile->l2_bytes, profile->device.l2_bytes);
    EXPECT_EQ(profile->copy_engines, profile->device.copy_engines);
    EXPECT_LT(profile->l1_hit_ns, profile->l2_hit_ns);
    EXPECT_LT(profile->l2_hit_ns, profile->hbm_ns);
    EXPECT_LT(profile->hbm_ns, profile->nvlink_load_ns);
    EXPECT_LT(profile->hbm_gbps, profile->l2_gbps);
    EXPECT_EQ(error_of(shipped(name)), "") << "as a file, too";
  }
}

TEST(ProfileTest, OccupancyIsThatOfTheHardware) {
  Profile h100 = value_or_throw(load_profile("h100x8"));
  EXPECT_EQ(h100.device.num_sms, 132u);
  EXPECT_EQ(h100.device.shared_per_block_optin_bytes, 227u * 1024);
  EXPECT_EQ(h100.target, "compute_90a");
  EXPECT_EQ(blocks_per_sm(h100.device, {.threads = 1024, .registers_per_thread = 32}), 2u);
  EXPECT_EQ(blocks_per_sm(h100.device, {.threads = 128, .shared_bytes = 227 * 1024}), 1u);
  EXPECT_EQ(blocks_per_sm(h100.device, {.threads = 128, .shared_bytes = 228 * 1024}), 0u);
  Profile a100 = value_or_throw(load_profile("a100x8"));
  EXPECT_EQ(a100.device.num_sms, 108u);
  EXPECT_EQ(blocks_per_sm(a100.device, {.threads = 128, .shared_bytes = 163 * 1024}), 1u);
  EXPECT_EQ(blocks_per_sm(a100.device, {.threads = 128, .shared_bytes = 164 * 1024}), 0u);
}

TEST(ProfileTest, OnlySwitchesOfHopperMulticast) {
  EXPECT_EQ(value_or_throw(load_profile("a100x8")).device.multicast_supported, 0u);
  EXPECT_GT(value_or_throw(load_profile("h200x8")).nvlink_multimem_efficiency, 0);
  EXPECT_THAT(
      error_of(replaced(shipped("a100x8"), "  hop_ns", "  multimem_efficiency: 0.5\n  hop_ns")),
      HasSubstr("multimem_efficiency"));
}

TEST(ProfileTest, TwoNodesDifferInTheirNumberOnly) {
  Profile one = value_or_throw(load_profile("h100x8"));
  Profile two = value_or_throw(load_profile("h100x8-2n"));
  EXPECT_EQ(two.num_devices(), 16);
  EXPECT_EQ(two.node_of_device(7), 0);
  EXPECT_EQ(two.node_of_device(8), 1);
  EXPECT_EQ(two.hbm_gbps, one.hbm_gbps);
  EXPECT_EQ(two.device.num_sms, one.device.num_sms);
  EXPECT_NE(two.hash, one.hash);
}

TEST(ProfileTest, AFileMustSayEverythingAndNothingElse) {
  std::string text = shipped("h100x8");
  EXPECT_THAT(error_of(text + "\nwarp_size: 32\n"), HasSubstr("warp_size"));
  EXPECT_THAT(error_of(replaced(text, "  hbm_ns: 358", "  hbm_nanoseconds: 358")),
              testing::AllOf(HasSubstr("mine.yaml:"), HasSubstr("hbm_ns")));
  EXPECT_THAT(error_of(replaced(text, "copy_efficiency: 0.875", "copy_efficiency: 1.2")),
              HasSubstr("copy_efficiency"));
  EXPECT_THAT(error_of(replaced(text, "hbm_gbps: 2950", "hbm_gbps: 0")), HasSubstr("hbm_gbps"));
  EXPECT_THAT(error_of(replaced(text, "hbm_gbps: 2950", "hbm_gbps: .inf")), HasSubstr("hbm_gbps"));
  EXPECT_THAT(error_of(replaced(text, "nodes: 1", "nodes: 4")), HasSubstr("32 devices"));
  EXPECT_THAT(error_of("name: x\ndescription: x\nnodes: 1\nbase: h999\n"), HasSubstr("h100x8"));
  EXPECT_THAT(error_of("name: x\ndescription: x\nnodes: 1\nbase: h100x8-2n\n"),
              HasSubstr("builds on another"));
}

TEST(ProfileTest, TheHashIsThatOfTheText) {
  std::string text = shipped("h100x8");
  TempDir folder("profile");
  std::string path = folder.path() + "/mine.yaml";
  write_file(path, text);
  EXPECT_EQ(value_or_throw(load_profile(path)).hash, value_or_throw(load_profile("h100x8")).hash);
  write_file(path, text + "# another\n");
  EXPECT_NE(value_or_throw(load_profile(path)).hash, value_or_throw(load_profile("h100x8")).hash);
}

TEST(ProfileTest, AnUnknownNameListsTheKnownOnes) {
  auto profile = load_profile("h999");
  ASSERT_FALSE(profile);
  EXPECT_THAT(profile.error().message(), HasSubstr("h100x8"));
  EXPECT_FALSE(load_profile("/nonexistent/profile.yaml"));
}

}  // namespace
}  // namespace cb::sim
