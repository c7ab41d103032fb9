#include "simulator/daemon/exec.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "simulator/daemon/report.h"
#include "simulator/daemon/server.h"

namespace cb::sim {
namespace {

constexpr int kTimeLimitExit = 124;
constexpr int kDeadlockExit = 125;
/// Numbers of the descriptors in the program.
constexpr int kConnectionFd = 3;
constexpr int kStagingFd = 4;

std::vector<std::string> environment_of(const ExecOptions& options, int rank) {
  std::vector<std::string> environment;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    std::string text = *entry;
    if (text.rfind("LD_LIBRARY_PATH=", 0) != 0) environment.push_back(text);
  }
  environment.push_back("LD_LIBRARY_PATH=" + options.library_folder);
  environment.push_back(fmt::format("{}={}", kConnectionFdVariable, kConnectionFd));
  environment.push_back(fmt::format("{}={}", kStagingFdVariable, kStagingFd));
  environment.push_back(fmt::format("COMMBENCH_RANK={}", rank));
  environment.push_back(fmt::format("COMMBENCH_WORLD={}", options.daemon.world_size));
  return environment;
}

Process start_rank(Server& server, const ExecOptions& options, int rank) {
  HostProcess& host = server.cluster().new_process(rank);
  Connection& connection = host.threads.front()->connection;
  ProcessOptions process;
  process.argv = options.command;
  process.env = environment_of(options, rank);
  process.fds = {{connection.host_fd(), kConnectionFd}, {connection.staging_fd(), kStagingFd}};
  process.output = ChildOutput::kInherit;
  Process started = Process::spawn(process);
  connection.drop_host_end();
  return started;
}

int exit_code_of(const ExitStatus& status) {
  return status.code ? *status.code : 128 + status.signal.value_or(0);
}

/// The programs of all ranks.
class Programs {
 public:
  Programs(Server& server, const ExecOptions& options) {
    for (int rank = 0; rank < options.daemon.world_size; ++rank) {
      processes_.push_back(start_rank(server, options, rank));
      server.also_watch.push_back(processes_.back().pidfd());
      codes_.emplace_back();
    }
  }

  /// Notes who has ended, and stops watching them.
  void look(Server& server) {
    server.also_watch.clear();
    for (size_t rank = 0; rank < processes_.size(); ++rank) {
      if (codes_[rank]) continue;
      if (auto status = processes_[rank].wait(0)) {
        codes_[rank] = exit_code_of(*status);
      } else {
        server.also_watch.push_back(processes_[rank].pidfd());
      }
    }
  }
  bool all_ended() const {
    for (const auto& code : codes_) {
      if (!code) return false;
    }
    return true;
  }
  void kill() {
    for (Process& process : processes_) process.kill(SIGKILL);
  }
  int first_failure() const {
    for (const auto& code : codes_) {
      if (code && *code != 0) return *code;
    }
    return 0;
  }

 private:
  std::vector<Process> processes_;
  std::vector<std::optional<int>> codes_;
};

/// Programs have ended, but what they sent last may be unread. A process of theirs that lives on
/// holds connections open: that ends the wait.
void read_what_was_sent(Server& server) {
  constexpr auto kPatience = std::chrono::seconds(2);
  auto end = std::chrono::steady_clock::now() + kPatience;
  auto lives = [](const auto& process) { return process->is_alive(); };
  const auto& processes = server.cluster().processes;
  server.also_watch.clear();
  while (std::any_of(processes.begin(), processes.end(), lives) &&
         std::chrono::steady_clock::now() < end) {
    server.step(1);
  }
}

}  // namespace

int execute(const ExecOptions& options) {
  Profile profile = value_or_throw(load_profile(options.daemon.profile));
  Server server(options.daemon, profile);
  if (options.delay_seed != 0) server.delay_hosts(options.delay_seed);
  Programs programs(server, options);
  auto wall_end =
      std::chrono::steady_clock::now() + std::chrono::milliseconds(options.daemon.wall_limit_ms);
  auto stop = [&](const std::string& why, int code) {
    std::fprintf(stderr, "commbench-simd: %s at %s\n%s", why.c_str(),
                 format_time_ps(server.gate().now()).c_str(),
                 describe_report(server.cluster()).c_str());
    programs.kill();
    return code;
  };
  constexpr int kLookMs = 100;
  for (programs.look(server); !programs.all_ended(); programs.look(server)) {
    Gate::Progress progress = server.step(kLookMs);
    if (progress == Gate::Progress::kDeadlock) return stop("deadlock", kDeadlockExit);
    if (options.virtual_limit_ps > 0 && server.gate().now() > options.virtual_limit_ps) {
      return stop("the limit of virtual time is reached", kTimeLimitExit);
    }
    if (options.daemon.wall_limit_ms > 0 && std::chrono::steady_clock::now() > wall_end) {
      return stop("the limit of real time is reached", kTimeLimitExit);
    }
  }
  read_what_was_sent(server);
  if (!options.report_path.empty()) {
    write_file(options.report_path,
               dump_json_pretty(make_report(server.cluster(), server.gate().now())));
  }
  std::string report = describe_report(server.cluster());
  if (!report.empty()) std::fprintf(stderr, "commbench-simd: findings\n%s", report.c_str());
  return programs.first_failure();
}

}  // namespace cb::sim
