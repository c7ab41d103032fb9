// Each attack runs twice where it matters: with what this machine has, and without cgroups and
// landlock, which is what an ordinary user in a container gets.
#include "sandbox/jail.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include "base/error.h"
#include "base/fd.h"
#include "base/file.h"
#include "base/process.h"

namespace cb {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr uint64_t kMiB = 1 << 20;
constexpr unsigned kPlainUser = kCgroups | kLandlock;

JailSpec attack(const std::string& name, unsigned without_layers = 0) {
  JailSpec spec;
  spec.argv = {"/box/attack", name};
  spec.read_only = {{COMMBENCH_JAIL_ATTACKS, "/box/attack"}};
  spec.limits.memory_bytes = 256 * kMiB;
  spec.limits.processes = 48;
  spec.without_layers = without_layers;
  return spec;
}

JailSpec shell(const std::string& script) {
  JailSpec spec;
  spec.argv = {"/usr/bin/sh", "-c", script};
  spec.env = {"PATH=/usr/bin"};
  spec.read_only = {{"/usr/bin", "/usr/bin"}};
  return spec;
}

bool ended(const JailedProcess& jail) {
  pollfd state{jail.pidfd(), POLLIN, 0};
  return ::poll(&state, 1, 0) != 0;
}

bool has_process_with(const std::string& word) {
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    Result<std::string> line = read_file(entry.path().string() + "/cmdline");
    if (line && line->find(word) != std::string::npos) return true;
  }
  return false;
}

TEST(JailTest, ProgramRunsAsABoxUserWithTheGivenEnvironmentOnly) {
  ::setenv("COMMBENCH_SECRET", "planted", 1);
  JailSpec spec = shell("id -u; env; pwd; cat");
  spec.env.emplace_back("GIVEN=1");
  CompletedJail done = run_jailed(spec, 10'000);
  EXPECT_TRUE(done.outcome.status.success()) << done.outcome.status.describe();
  EXPECT_THAT(done.standard_output, StartsWith("60000\n"));
  EXPECT_THAT(done.standard_output, HasSubstr("GIVEN=1\n"));
  EXPECT_THAT(done.standard_output, HasSubstr("\n/tmp\n"));
  EXPECT_THAT(done.standard_output, ::testing::Not(HasSubstr("planted")));
  EXPECT_EQ(done.outcome.limit, LimitHit::kNone);
}

TEST(JailTest, OutsideUserIsNeverRoot) {
  JailedProcess jail = JailedProcess::spawn(attack("ignore_everything"));
  Result<std::string> status = read_file("/proc/" + std::to_string(jail.payload_pid()) + "/status");
  ASSERT_TRUE(status);
  std::string expected = ::geteuid() == 0 ? "60000" : std::to_string(::geteuid());
  EXPECT_THAT(*status, HasSubstr("Uid:\t" + expected + "\t" + expected + "\t" + expected));
  EXPECT_THAT(*status, HasSubstr("CapPrm:\t0000000000000000"));
}

TEST(JailTest, SystemCallsOfThePayloadCanBeSampled) {
  JailedProcess jail = JailedProcess::spawn(attack("ignore_everything"));
  std::string path = "/proc/" + std::to_string(jail.payload_pid()) + "/syscall";
  std::string pausing = std::to_string(SYS_pause) + " ";
  while (!ended(jail)) {
    Result<std::string> sample = read_file(path);
    ASSERT_TRUE(sample) << sample.error().message();
    if (sample->starts_with(pausing)) return;
  }
  ADD_FAILURE() << "the program never paused";
}

// Run by the test below, inside a user namespace that allows no further one.
TEST(JailTest, DISABLED_SaysWhyItRefuses) {
  try {
    require_jail();
    ADD_FAILURE() << "this machine can jail";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::kRefused);
    std::printf("refused: %s\n", error.what());
  }
}

TEST(JailTest, RefusesWithTheNextStepWhereNamespacesAreForbidden) {
  // As root inside, which cannot become a box user; and as a user, who gets no namespace.
  for (const auto& [uid, reason] : {std::pair{"0", "cannot become"}, {"1000", "namespace"}}) {
    ProcessOptions options;
    options.argv = {
        "bwrap", "--unshare-user", "--disable-userns", "--uid", uid,  "--ro-bind",     "/", "/",
        "--dev", "/dev",           "--proc",           "/proc", "--", "/proc/self/exe"};
    options.argv.back() = std::filesystem::read_symlink("/proc/self/exe").string();
    options.argv.insert(options.argv.end(), {"--gtest_also_run_disabled_tests",
                                             "--gtest_filter=JailTest.DISABLED_SaysWhyItRefuses"});
    options.env = {"PATH=/usr/bin"};
    CompletedProcess done = run_process(options, 20'000);
    EXPECT_TRUE(done.status.success()) << done.standard_output << done.standard_error;
    EXPECT_THAT(done.standard_output, HasSubstr("refused: "));
    EXPECT_THAT(done.standard_output, HasSubstr(reason));
  }
}

TEST(JailTest, BoxSlotsAreDifferentUsers) {
  if (::geteuid() != 0) GTEST_SKIP() << "box users need root";
  JailSpec spec = attack("ignore_everything");
  spec.box_slot = 5;
  JailedProcess jail = JailedProcess::spawn(spec);
  Result<std::string> status = read_file("/proc/" + std::to_string(jail.payload_pid()) + "/status");
  ASSERT_TRUE(status);
  EXPECT_THAT(*status, HasSubstr("Uid:\t60005\t"));
  spec.box_slot = 64;
  EXPECT_THROW(JailedProcess::spawn(spec), Error);
}

TEST(JailTest, ExitCodesAndSignalsAreKeptApart) {
  EXPECT_EQ(run_jailed(shell("exit 3"), 10'000).outcome.status.describe(), "exit code 3");
  EXPECT_EQ(run_jailed(attack("exit_like_a_signal"), 10'000).outcome.status.describe(),
            "exit code 137");
  EXPECT_EQ(run_jailed(attack("crash"), 10'000).outcome.status.describe(), "killed by SIGSEGV");
  EXPECT_EQ(run_jailed(attack("overflow_stack"), 10'000).outcome.status.describe(),
            "killed by SIGSEGV");
}

TEST(JailTest, OnlyNamedDescriptorsReachTheProgram) {
  UniqueFd canary(::open("/dev/null", O_RDONLY));  // deliberately not close-on-exec
  UniqueFd given(::memfd_create("given", MFD_CLOEXEC));
  ASSERT_EQ(::write(given.get(), "hello", 5), 5);
  ::lseek(given.get(), 0, SEEK_SET);
  JailSpec spec = shell("cat <&5; ls /proc/self/fd | tr '\\n' ' '");
  spec.fds = {{given.get(), 5}};
  // 3 is ls reading the folder itself.
  EXPECT_EQ(run_jailed(spec, 10'000).standard_output, "hello0 1 2 3 5 ");
}

TEST(JailTest, DescriptorsMayTakeTheNumbersThatBoxinitUses) {
  UniqueFd first(::memfd_create("first", MFD_CLOEXEC));
  UniqueFd second(::memfd_create("second", MFD_CLOEXEC));
  ASSERT_EQ(::write(first.get(), "first", 5), 5);
  ASSERT_EQ(::write(second.get(), "second", 6), 6);
  ::lseek(first.get(), 0, SEEK_SET);
  ::lseek(second.get(), 0, SEEK_SET);
  JailSpec spec = shell("cat <&17; cat <&3");
  spec.argv[0] = "/usr/bin/bash";  // dash has no two-digit descriptors
  spec.fds = {{first.get(), 3}, {second.get(), 17}};
  EXPECT_EQ(run_jailed(spec, 10'000).standard_output, "secondfirst");
}

TEST(JailTest, OutputIsReadWhileNobodyWaits) {
  JailSpec spec = shell("head -c 300000 /dev/zero; echo end >&2; exec sleep 60");
  JailedProcess jail = JailedProcess::spawn(spec);
  while (jail.standard_error().empty() && !ended(jail)) ::sched_yield();
  EXPECT_EQ(jail.standard_output().size(), 300'000u);
  EXPECT_EQ(jail.standard_error(), "end\n");
}

TEST(JailTest, FloodsOfOutputEndTheJail) {
  for (const char* name : {"flood_stdout", "flood_stderr"}) {
    CompletedJail done = run_jailed(attack(name), 20'000);
    EXPECT_EQ(done.outcome.limit, LimitHit::kOutput) << name;
    EXPECT_FALSE(done.timed_out) << name;
    EXPECT_EQ(done.standard_output.size() + done.standard_error.size(), kMiB) << name;
  }
}

TEST(JailTest, ForkBombsEndTheJail) {
  for (unsigned layers : {0u, kPlainUser}) {
    CompletedJail done = run_jailed(attack("fork_bomb", layers), 20'000);
    EXPECT_EQ(done.outcome.limit, LimitHit::kProcesses) << layers;
    EXPECT_FALSE(done.timed_out) << layers;
  }
}

TEST(JailTest, ThreadBombsFail) {
  CompletedJail done = run_jailed(attack("thread_bomb", kPlainUser), 20'000);
  EXPECT_FALSE(done.outcome.status.success());
  EXPECT_FALSE(done.timed_out);
  done = run_jailed(attack("thread_bomb"), 20'000);
  // Without a counter of refused threads, the program's own failure is all there is to see.
  if (done.outcome.assurance == "full") {
    EXPECT_EQ(done.outcome.limit, LimitHit::kProcesses);
  }
}

TEST(JailTest, MemoryBombsEndTheJail) {
  for (unsigned layers : {0u, kPlainUser}) {
    for (const char* name :
         {"memory_bomb", "shared_memory_bomb", "memory_by_children", "memory_in_child_only"}) {
      CompletedJail done = run_jailed(attack(name, layers), 20'000);
      EXPECT_EQ(done.outcome.limit, LimitHit::kMemory)
          << name << " " << layers << " " << done.outcome.status.describe();
      EXPECT_FALSE(done.timed_out) << name << " " << layers;
      EXPECT_GT(done.outcome.peak_memory_bytes, 128 * kMiB) << name << " " << layers;
    }
  }
}

TEST(JailTest, CgroupsAloneCatchMemoryBombs) {
  JailSpec spec = attack("memory_in_child_only", kWatchdog);
  CompletedJail done = run_jailed(spec, 20'000);
  if (done.outcome.assurance != "full") GTEST_SKIP() << done.outcome.assurance;
  EXPECT_EQ(done.outcome.limit, LimitHit::kMemory);
}

TEST(JailTest, ReservedAddressSpaceIsNotMemory) {
  CompletedJail done = run_jailed(attack("reserve_terabytes"), 10'000);
  EXPECT_EQ(done.outcome.status.describe(), "exit code 0");
}

TEST(JailTest, FilesAreCapped) {
  for (const char* name : {"big_file", "sparse_file"}) {
    JailSpec spec = attack(name);
    spec.limits.file_bytes = 16 * kMiB;
    CompletedJail done = run_jailed(spec, 10'000);
    EXPECT_EQ(done.outcome.status.describe(), "killed by SIGXFSZ") << name;
    EXPECT_EQ(done.outcome.limit, LimitHit::kFile) << name;
  }
  JailSpec full = attack("big_file");
  full.limits.tmp_bytes = 16 * kMiB;
  CompletedJail done = run_jailed(full, 10'000);
  EXPECT_EQ(done.outcome.status.describe(), "exit code 1");
  EXPECT_EQ(done.outcome.limit, LimitHit::kFile);
  EXPECT_EQ(run_jailed(attack("many_files"), 10'000).outcome.limit, LimitHit::kFile);
}

TEST(JailTest, ProcessorTimeIsCapped) {
  for (const char* name : {"spin", "spin_ignoring_sigxcpu"}) {
    for (unsigned layers : {0u, kPlainUser}) {
      JailSpec spec = attack(name, layers);
      spec.limits.cpu_s = 1;
      CompletedJail done = run_jailed(spec, 60'000);
      EXPECT_EQ(done.outcome.limit, LimitHit::kCpu) << name << " " << layers;
      EXPECT_GE(done.outcome.cpu_seconds, 0.9) << name << " " << layers;
    }
  }
}

TEST(JailTest, DeniedCallsEndTheJailWithTheirName) {
  for (const char* name : {"ptrace_init", "ptrace_in_child"}) {
    CompletedJail done = run_jailed(attack(name), 10'000);
    EXPECT_TRUE(done.outcome.killed_for_syscall) << name;
    EXPECT_EQ(done.outcome.syscall_name, "ptrace") << name;
    EXPECT_EQ(done.outcome.status.describe(), "killed by SIGKILL") << name;
  }
  CompletedJail done = run_jailed(attack("old_syscall"), 10'000);
  EXPECT_TRUE(done.outcome.killed_for_syscall);
  EXPECT_EQ(done.outcome.syscall_name, "foreign architecture");
}

TEST(JailTest, InitCannotBeKilledFromInside) {
  CompletedJail done = run_jailed(attack("kill_everybody"), 10'000);
  EXPECT_EQ(done.outcome.status.describe(), "exit code 9");
}

TEST(JailTest, LimitsCannotBeRaised) {
  EXPECT_EQ(run_jailed(attack("raise_limits"), 10'000).outcome.status.describe(), "exit code 1");
}

TEST(JailTest, DaemonsEndWithTheMainProcess) {
  CompletedJail done = run_jailed(attack("daemonise"), 10'000);
  EXPECT_EQ(done.outcome.status.describe(), "exit code 7");
  EXPECT_FALSE(done.timed_out);
  EXPECT_FALSE(has_process_with("daemonise"));
}

TEST(JailTest, KillLeavesNothing) {
  for (const char* name : {"ignore_everything", "stop_self", "memory_by_children"}) {
    JailSpec spec = attack(name);
    spec.limits.memory_bytes = 2048 * kMiB;
    JailedProcess jail = JailedProcess::spawn(spec);
    EXPECT_FALSE(jail.wait(0)) << name;
    jail.kill();
    std::optional<JailOutcome> outcome = jail.wait(0);
    ASSERT_TRUE(outcome) << name;
    EXPECT_EQ(outcome->status.signal, SIGKILL) << name;
    EXPECT_FALSE(outcome->setup_failed) << name;
    EXPECT_FALSE(has_process_with(name)) << name;
  }
}

TEST(JailTest, PidfdBecomesReadableAtTheEnd) {
  JailedProcess jail = JailedProcess::spawn(shell("exit 0"));
  pollfd ended{jail.pidfd(), POLLIN, 0};
  ASSERT_EQ(::poll(&ended, 1, 10'000), 1);
  EXPECT_TRUE(jail.wait(10'000)->status.success());
}

TEST(JailTest, DiesWithTheHarness) {
  UniqueFd alive;
  pid_t payload = 0;
  {
    int ends[2];
    ASSERT_EQ(::pipe(ends), 0);
    pid_t harness = ::fork();
    if (harness == 0) {
      JailedProcess jail = JailedProcess::spawn(attack("ignore_everything"));
      pid_t pid = jail.payload_pid();
      ssize_t written = ::write(ends[1], &pid, sizeof pid);
      (void)written;
      while (true) ::pause();
    }
    ASSERT_EQ(::read(ends[0], &payload, sizeof payload), ssize_t{sizeof payload});
    alive.reset(static_cast<int>(::syscall(SYS_pidfd_open, payload, 0)));
    ASSERT_TRUE(alive);
    ::kill(harness, SIGKILL);
    ::waitpid(harness, nullptr, 0);
    ::close(ends[0]);
    ::close(ends[1]);
  }
  pollfd gone{alive.get(), POLLIN, 0};
  EXPECT_EQ(::poll(&gone, 1, 10'000), 1);
}

TEST(JailTest, FilesOfAClosedFolderAreCopiedIn) {
  TempDir closed("jail-test-");  // mode 0700
  std::filesystem::create_directories(closed.path() + "/tree/sub");
  std::ofstream(closed.path() + "/tree/sub/file") << "inner";
  std::ofstream(closed.path() + "/single") << "outer";
  JailSpec spec = shell("cat /box/tree/sub/file /box/single; echo x > /box/single");
  spec.read_only.emplace_back(closed.path() + "/tree", "/box/tree");
  spec.read_only.emplace_back(closed.path() + "/single", "/box/single");
  CompletedJail done = run_jailed(spec, 10'000);
  EXPECT_EQ(done.standard_output, "innerouter");
  EXPECT_FALSE(done.outcome.status.success());
}

TEST(JailTest, GivenContentAppearsAsReadOnlyFiles) {
  JailSpec spec = shell(
      "cat /box/a/one /box/two; stat -c ' %Y' /box/a/one; echo x > /box/two; chmod 700 /box/two");
  spec.files = {{"/box/a/one", "first "}, {"/box/two", "second"}};
  CompletedJail done = run_jailed(spec, 10'000);
  // With a fixed time, so that compilers make the same of them each time.
  EXPECT_EQ(done.standard_output, "first second 0\n");
  EXPECT_FALSE(done.outcome.status.success());
}

TEST(JailTest, AProgramThatDoesNotExistIsASetupFailure) {
  JailSpec spec;
  spec.argv = {"/no/such/program"};
  JailOutcome outcome = run_jailed(spec, 10'000).outcome;
  EXPECT_TRUE(outcome.setup_failed);
  EXPECT_EQ(outcome.setup_message, "starting the program: No such file or directory");
}

TEST(JailTest, ImpossibleSpecsAreRefused) {
  JailSpec spec = shell("true");
  spec.read_only.emplace_back("/no/such/file", "/box/file");
  EXPECT_THROW(JailedProcess::spawn(spec), Error);
  spec = shell("true");
  spec.read_only.emplace_back("/usr/bin/env", "/box/../etc/shadow");
  EXPECT_THROW(JailedProcess::spawn(spec), Error);
  spec = shell("true");
  spec.devices = {"/dev/zero"};
  EXPECT_THROW(JailedProcess::spawn(spec), Error);
  spec = shell("true");
  spec.limits.processes = 0;
  EXPECT_THROW(JailedProcess::spawn(spec), Error);
}

TEST(JailTest, AssuranceNamesWhatIsMissing) {
  JailSpec spec = shell("true");
  spec.without_layers = kLandlock;
  EXPECT_THAT(run_jailed(spec, 10'000).outcome.assurance, HasSubstr("no landlock"));
  EXPECT_FALSE(jail_assurance().empty());
}

TEST(JailTest, NeighboursAreNotDisturbedByBombs) {
  JailSpec honest = shell("i=0; while [ $i -lt 200 ]; do i=$((i+1)); done; echo $i");
  honest.box_slot = 1;
  JailedProcess bomb = JailedProcess::spawn(attack("fork_bomb"));
  JailSpec eater = attack("memory_bomb");
  eater.box_slot = 2;
  JailedProcess other = JailedProcess::spawn(eater);
  CompletedJail done = run_jailed(honest, 20'000);
  EXPECT_EQ(done.standard_output, "200\n");
  EXPECT_EQ(bomb.wait(20'000)->limit, LimitHit::kProcesses);
  EXPECT_EQ(other.wait(20'000)->limit, LimitHit::kMemory);
}

}  // namespace
}  // namespace cb
