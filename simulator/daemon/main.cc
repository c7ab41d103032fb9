// commbench-simd: the daemon of one evaluation, or `commbench-simd exec` for programs without
// trusted ranks.

#include <sys/prctl.h>
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <csignal>
#include <cstdio>
#include <filesystem>

#include "simulator/client/daemon_options.h"
#include "simulator/daemon/exec.h"
#include "simulator/daemon/server.h"

namespace {

using namespace cb;
using namespace cb::sim;

/// Two descriptors for each of up to 64 threads of every rank.
void allow_many_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

std::string default_library_folder() {
  return (std::filesystem::read_symlink("/proc/self/exe").parent_path().parent_path() / "lib")
      .string();
}

int serve(int listen_fd, const std::string& options_text) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  DaemonOptions options = value_or_throw(daemon_options_from_text(options_text));
  Profile profile = value_or_throw(load_profile(options.profile));
  Server server(options, profile, UniqueFd(listen_fd));
  server.run();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("The daemon of CommBench's simulated GPU cluster");
  int listen_fd = -1;
  std::string options_text = "{}";
  app.add_option("--listen-fd", listen_fd, "Inherited listening socket for the trusted ranks");
  app.add_option("--options", options_text, "Options of the job, as JSON");

  ExecOptions exec;
  exec.daemon.world_size = 1;
  exec.library_folder = default_library_folder();
  bool functional = false;
  double limit_ms = 0, wall_limit_s = 0;
  CLI::App* run = app.add_subcommand("exec", "Run a CUDA program on a simulated cluster");
  run->add_option("--profile", exec.daemon.profile, "Simulated hardware")->capture_default_str();
  run->add_option("--ranks", exec.daemon.world_size, "Processes to start, one per GPU")
      ->capture_default_str();
  run->add_flag("--functional", functional, "Execute without modelling time");
  run->add_option("--virtual-limit-ms", limit_ms, "End the run after that much simulated time");
  run->add_option("--wall-limit-s", wall_limit_s, "End the run after that much real time");
  run->add_option("--libraries", exec.library_folder, "Folder of libcudart.so.13")
      ->capture_default_str();
  run->add_option("--report", exec.report_path, "File for findings and statistics, as JSON");
  run->add_option("--host-delays", exec.delay_seed,
                  "Seed of random real delays of what hosts send; results stay the same")
      ->type_name("SEED");
  run->add_option("command", exec.command, "Program and its arguments, after --")->required();
  CLI11_PARSE(app, argc, argv);

  std::signal(SIGPIPE, SIG_IGN);
  allow_many_descriptors();
  try {
    if (run->parsed()) {
      exec.daemon.timed = !functional;
      exec.virtual_limit_ps = static_cast<uint64_t>(limit_ms * 1e9);
      exec.daemon.wall_limit_ms = static_cast<uint64_t>(wall_limit_s * 1e3);
      return execute(exec);
    }
    if (listen_fd < 0) {
      std::fprintf(stderr, "commbench-simd: --listen-fd or exec is needed; see --help\n");
      return 2;
    }
    return serve(listen_fd, options_text);
  } catch (const Error& error) {
    std::fprintf(stderr, "commbench-simd: %s\n", error.what());
    return 2;
  }
}
