// The program itself: how it starts, and how it and its peers end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>

#include "base/file.h"
#include "base/process.h"
#include "base/socket.h"
#include "simulator/client/daemon_options.h"

namespace cb::sim {
namespace {

class DaemonProcess : public ::testing::Test {
 protected:
  void start(const std::string& options) {
    UniqueFd listener = seqpacket_listen(path_);
    ProcessOptions process;
    process.argv = {COMMBENCH_SIMD, "--listen-fd", "3", "--options", options};
    process.fds = {{listener.get(), 3}};
    daemon_.emplace(Process::spawn(process));
  }
  TempDir folder_{"daemon"};
  std::string path_ = folder_.path() + "/socket";
  std::optional<Process> daemon_;
};

TEST_F(DaemonProcess, EndsWhenItsRanksAreGone) {
  start(to_text({.world_size = 2}));
  {
    RankClient first(path_, 0, 5000);
    RankClient second(path_, 1, 5000);
    EXPECT_THROW(RankClient(path_, 1, 5000), Error) << "a rank comes once";
    EXPECT_THROW(RankClient(path_, 2, 5000), Error) << "there is no such rank";
    EXPECT_FALSE(daemon_->wait(50));
  }
  std::optional<ExitStatus> status = daemon_->wait(5000);
  ASSERT_TRUE(status);
  EXPECT_TRUE(status->success()) << status->describe();
}

TEST_F(DaemonProcess, ItsDeathIsAnErrorOfEveryCall) {
  start(to_text({.world_size = 1}));
  RankClient rank(path_, 0, 5000);
  HostConnection host = rank.host_connection();
  daemon_->kill(SIGKILL);
  ASSERT_TRUE(daemon_->wait(5000));
  EXPECT_THROW(rank.wait(5000), Error);
  EXPECT_THROW(rank.release_all(), Error);
  std::byte buffer[8];
  EXPECT_EQ(receive_message(host.connection.get(), buffer, 5000), 0u) << "the host sees it, too";
}

TEST_F(DaemonProcess, SaysWhatIsWrongWithItsOptions) {
  for (const char* options :
       {"{\"world_size\": 99}", "{\"no_such\": 1}", "{\"profile\": \"x9\"}"}) {
    path_ += "x";
    start(options);
    std::optional<ExitStatus> status = daemon_->wait(5000);
    ASSERT_TRUE(status);
    EXPECT_EQ(status->code, 2);
    EXPECT_THAT(daemon_->standard_error(), ::testing::StartsWith("commbench-simd: "));
  }
}

TEST(DaemonOptionsText, SurvivesTheWay) {
  DaemonOptions options{
      .profile = "a", .world_size = 3, .timed = false, .fatbin_sha256 = {"ff"}, .any_code = false};
  DaemonOptions back = value_or_throw(daemon_options_from_text(to_text(options)));
  EXPECT_EQ(to_text(back), to_text(options));
  EXPECT_FALSE(daemon_options_from_text("{\"timed\": \"yes\"}"));
}

}  // namespace
}  // namespace cb::sim
