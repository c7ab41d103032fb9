#include "base/process.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/error.h"

namespace cb {
namespace {

ProcessOptions shell(const std::string& script) {
  ProcessOptions options;
  options.argv = {"/bin/sh", "-c", script};
  options.env = {"PATH=/usr/bin:/bin"};
  return options;
}

TEST(ProcessTest, CapturesBothStreamsAndTheExitCode) {
  CompletedProcess done = run_process(shell("echo out; echo err >&2; exit 3"), 5000);
  EXPECT_EQ(done.standard_output, "out\n");
  EXPECT_EQ(done.standard_error, "err\n");
  EXPECT_EQ(done.status.code, 3);
  EXPECT_EQ(done.status.describe(), "exit code 3");
}

TEST(ProcessTest, ASignalIsNotAnExitCode) {
  CompletedProcess done = run_process(shell("kill -SEGV $$"), 5000);
  EXPECT_FALSE(done.status.code.has_value());
  EXPECT_EQ(done.status.signal, SIGSEGV);
  EXPECT_EQ(done.status.describe(), "killed by SIGSEGV");
}

TEST(ProcessTest, KeepsTheLimitAndCountsTheRest) {
  ProcessOptions options = shell("head -c 1000000 /dev/zero");
  options.output_limit = 1000;
  CompletedProcess done = run_process(options, 5000);
  EXPECT_EQ(done.standard_output.size(), 1000u);
  EXPECT_EQ(done.output_bytes, 1'000'000u);
}

TEST(ProcessTest, ATimeoutKillsTheWholeGroup) {
  CompletedProcess done = run_process(shell("sleep 100 & sleep 100"), 50);
  EXPECT_TRUE(done.timed_out);
  EXPECT_EQ(done.status.signal, SIGKILL);
}

TEST(ProcessTest, AGrandchildThatHoldsStdoutDoesNotDelayTheEnd) {
  CompletedProcess done = run_process(shell("setsid sleep 3 & echo done"), 2000);
  EXPECT_FALSE(done.timed_out);
  EXPECT_EQ(done.standard_output, "done\n");
}

TEST(ProcessTest, OnlyNamedDescriptorsReachTheChild) {
  UniqueFd ours(::dup(2));
  ProcessOptions options = shell("ls /proc/self/fd | tr '\\n' ' '");
  options.fds = {{ours.get(), 7}};
  CompletedProcess done = run_process(options, 5000);
  // 3 is ls reading the folder itself.
  EXPECT_EQ(done.standard_output, "0 1 2 3 7 ");
}

TEST(ProcessTest, LimitsApply) {
  ProcessOptions options = shell("ulimit -f");
  options.limits = {{RLIMIT_FSIZE, 1 << 20, 1 << 20}};
  EXPECT_EQ(run_process(options, 5000).standard_output, "2048\n");
}

TEST(ProcessTest, AMissingProgramIsAnErrorThatNamesIt) {
  ProcessOptions options = shell("");
  options.argv = {"/no/such/program"};
  try {
    run_process(options, 1000);
    FAIL() << "expected an error";
  } catch (const Error& e) {
    EXPECT_STREQ(e.what(), "start /no/such/program: exec: No such file or directory");
  }
}

TEST(ProcessTest, DestroyingKills) {
  pid_t pid = 0;
  {
    Process process = Process::spawn(shell("sleep 100"));
    pid = process.pid();
  }
  EXPECT_EQ(::kill(pid, 0), -1);
}

}  // namespace
}  // namespace cb
