#include "sandbox/job_namespaces.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"

namespace cb {
namespace {

JailSpec rank_of(const JobNamespaces* job, const std::string& script) {
  JailSpec spec;
  spec.scope = JailScope::kJob;
  spec.job = job;
  spec.argv = {"/usr/bin/bash", "-c", script};
  spec.env = {"PATH=/usr/bin"};
  spec.read_only = {{"/usr/bin", "/usr/bin"}};
  return spec;
}

std::string output_of(const JobNamespaces* job, const std::string& script) {
  CompletedJail done = run_jailed(rank_of(job, script), 20'000);
  EXPECT_FALSE(done.outcome.setup_failed) << done.outcome.setup_message;
  EXPECT_FALSE(done.timed_out);
  return done.standard_output + done.standard_error;
}

constexpr const char* kNamespaces = "readlink /proc/self/ns/net /proc/self/ns/ipc";

TEST(JobNamespacesTest, JailsOfOneJobShareNetworkAndIpc) {
  JobNamespaces job = JobNamespaces::create(3);
  std::string first = output_of(&job, kNamespaces);
  EXPECT_THAT(first, ::testing::HasSubstr("net:["));
  EXPECT_EQ(output_of(&job, kNamespaces), first);
  EXPECT_NE(output_of(nullptr, kNamespaces), first);
  JobNamespaces other = JobNamespaces::create(4);
  EXPECT_NE(output_of(&other, kNamespaces), first);
}

TEST(JobNamespacesTest, FilesInSharedMemoryStayWithinTheJob) {
  JobNamespaces job = JobNamespaces::create(3);
  JobNamespaces other = JobNamespaces::create(4);
  output_of(&job, "echo hello > /dev/shm/from-rank-0; echo secret > /tmp/own");
  EXPECT_EQ(output_of(&job, "cat /dev/shm/from-rank-0; ls /tmp"), "hello\n");
  EXPECT_EQ(output_of(&other, "ls /dev/shm"), "");
  EXPECT_EQ(output_of(nullptr, "ls /dev/shm"), "");
}

TEST(JobNamespacesTest, OnlyLoopbackIsThere) {
  JobNamespaces job = JobNamespaces::create(3);
  // Names come with two header lines.
  EXPECT_EQ(output_of(&job, "wc -l < /proc/self/net/dev"), "3\n");
  EXPECT_THAT(output_of(&job, "echo x > /dev/tcp/192.0.2.1/80"),
              ::testing::HasSubstr("Network is unreachable"));
  EXPECT_THAT(output_of(&job, "echo x > /dev/tcp/127.0.0.1/1"),
              ::testing::HasSubstr("Connection refused"));
}

TEST(JobNamespacesTest, AnotherProcessFindsThemByTheirToken) {
  JobNamespaces job = JobNamespaces::create(3);
  JobNamespaces found = JobNamespaces::open(job.token());
  EXPECT_EQ(output_of(&found, kNamespaces), output_of(&job, kNamespaces));
  EXPECT_EQ(found.box_slot(), 3u);
  for (const char* token :
       {"", "1", "x:0:/dev/shm/commbench-job-a", "1:0:/etc", "-1:0:/dev/shm/x"}) {
    EXPECT_THROW(JobNamespaces::open(token), Error) << token;
  }
}

TEST(JobNamespacesTest, NothingIsLeft) {
  std::string token;
  std::string folder;
  {
    JobNamespaces job = JobNamespaces::create(3);
    token = job.token();
    folder = job.shared_folder();
    output_of(&job, "ln -s /etc /dev/shm/link; mkdir /dev/shm/sub; echo x > /dev/shm/sub/file");
  }
  EXPECT_FALSE(std::filesystem::exists(folder));
  EXPECT_TRUE(std::filesystem::exists("/etc/passwd"));
  EXPECT_THROW(JobNamespaces::open(token), Error);
}

TEST(JobNamespacesTest, RankScopeCannotJoin) {
  JobNamespaces job = JobNamespaces::create(3);
  JailSpec spec = rank_of(&job, "true");
  spec.scope = JailScope::kRank;
  EXPECT_THROW(JailedProcess::spawn(spec), Error);
}

}  // namespace
}  // namespace cb
