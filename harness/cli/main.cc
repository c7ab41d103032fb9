// The commbench command. stdout carries results only, stderr the rest.
#include <fmt/format.h>

#include <csignal>
#include <cstdio>

#include "harness/cli/command.h"

namespace cb::cli {
namespace {

constexpr const char* kExitCodes =
    "Exit codes: 0 done, 1 a candidate did not pass or is not as expected, 2 usage,\n"
    "3 infrastructure, 4 refused (for example without a sandbox).";

int run_command(int argc, char** argv) {
  Common common;
  int exit_code = kDone;
  CLI::App app("Scores GPU communication code on simulated clusters.", "commbench");
  app.footer(kExitCodes);
  app.require_subcommand(1);
  app.fallthrough();
  app.add_flag("--json", common.json, "print one JSON document instead of text");
  app.add_flag("--quiet", common.quiet, "no progress on stderr");
  app.add_option("--task-dir", common.task_dirs, "folders with tasks beside our own");
  add_doctor(app, common, exit_code);
  add_task(app, common, exit_code);
  add_run(app, common, exit_code);
  add_score(app, common, exit_code);
  add_eval(app, common, exit_code);
  add_resume(app, common, exit_code);
  add_explain(app, common, exit_code);
  add_sim(app, common, exit_code);
  add_cassette(app, common, exit_code);
  add_mock_llm(app, common, exit_code);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? kDone : kUsage;
  } catch (const Error& error) {
    std::fprintf(stderr, "commbench: %s\n", error.what());
    return exit_code_of(error.code());
  }
  return exit_code;
}

}  // namespace
}  // namespace cb::cli

int main(int argc, char** argv) {
  // A rank that dies while we write to it is an error of ours, not our end.
  std::signal(SIGPIPE, SIG_IGN);
  return cb::cli::run_command(argc, argv);
}
