#include "sandbox/cgroup.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

namespace cb {
namespace {

TEST(CgroupTest, FindsEachVersion1HierarchyBelowOurOwn) {
  CgroupLayout layout =
      locate_cgroups("9:name=systemd:/\n8:pids:/\n4:memory:/job/7\n2:cpu,cpuacct:/\n0::/\n",
                     "30 20 0:26 / /sys/fs/cgroup/memory rw,relatime - cgroup cgroup rw,memory\n"
                     "31 20 0:27 / /sys/fs/cgroup/pids rw shared:3 - cgroup cgroup rw,pids\n"
                     "32 20 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup cgroup rw,cpu,cpuacct\n"
                     "33 20 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(layout.version, 1);
  EXPECT_EQ(layout.memory_folder, "/sys/fs/cgroup/memory/job/7");
  EXPECT_EQ(layout.pids_folder, "/sys/fs/cgroup/pids");
  EXPECT_EQ(layout.cpu_folder, "/sys/fs/cgroup/cpu,cpuacct");
}

TEST(CgroupTest, FindsTheUnifiedHierarchy) {
  CgroupLayout layout =
      locate_cgroups("0::/user.slice/user-1000.slice/session-2.scope\n",
                     "24 18 0:22 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(layout.version, 2);
  EXPECT_EQ(layout.memory_folder, "/sys/fs/cgroup/user.slice/user-1000.slice/session-2.scope");
  EXPECT_EQ(layout.memory_folder, layout.pids_folder);
}

TEST(CgroupTest, AContainersMountRootIsNotPartOfThePath) {
  CgroupLayout layout =
      locate_cgroups("4:memory:/docker/abc/sub\n",
                     "30 20 0:26 /docker/abc /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  EXPECT_EQ(layout.memory_folder, "/sys/fs/cgroup/memory/sub");
}

TEST(CgroupTest, NothingMountedIsNoVersion) {
  EXPECT_EQ(locate_cgroups("0::/\n", "").version, 0);
  EXPECT_EQ(locate_cgroups("", "garbage\n1 2 3 - \n").version, 0);
}

TEST(CgroupTest, SaysWhatIsMissingOrCountsMemory) {
  Cgroup group = Cgroup::create(64 << 20, 10);
  if (!group.missing().empty()) {
    EXPECT_EQ(group.missing().find("no "), 0u);
    GTEST_SKIP() << group.missing();
  }
  EXPECT_TRUE(group.oom_file());
  EXPECT_FALSE(group.out_of_memory());
}

}  // namespace
}  // namespace cb
