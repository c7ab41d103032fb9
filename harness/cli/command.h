#pragma once

#include <CLI/CLI.hpp>
#include <memory>
#include <string>
#include <vector>

#include "base/json.h"
#include "base/random.h"
#include "harness/layout.h"
#include "results/record.h"
#include "tasks/card.h"

namespace cb::cli {

/// What a command returns to the shell.
enum ExitCode : int {
  kDone = 0,
  kDidNotPass = 1,
  kUsage = 2,
  kInfrastructure = 3,
  kRefused = 4,
};
int exit_code_of(ErrorCode code);

/// Flags that all commands have.
struct Common {
  bool json = false;
  bool quiet = false;
  std::vector<std::string> task_dirs;
  harness::Layout layout = harness::Layout::of_this_build();
};

/// Adds commands to the application. What a command returns goes into `exit_code`.
void add_doctor(CLI::App& app, const Common& common, int& exit_code);
void add_task(CLI::App& app, const Common& common, int& exit_code);
void add_run(CLI::App& app, const Common& common, int& exit_code);
void add_score(CLI::App& app, const Common& common, int& exit_code);
void add_explain(CLI::App& app, const Common& common, int& exit_code);
void add_eval(CLI::App& app, const Common& common, int& exit_code);
void add_resume(CLI::App& app, const Common& common, int& exit_code);
void add_cassette(CLI::App& app, const Common& common, int& exit_code);
void add_mock_llm(CLI::App& app, const Common& common, int& exit_code);
void add_sim(CLI::App& app, const Common& common, int& exit_code);

/// Our tasks and those of --task-dir, bad cards included.
std::vector<tasks::FoundTask> find_all_tasks(const Common& common);
/// A task by id, or by the path of its folder. Throws Error(kUsage) with the closest id.
tasks::Card find_task(const Common& common, const std::string& name);

/// The key given by --run-key, or a fresh one where that is empty.
RunKey run_key_of(const std::string& hex);
/// What a run's manifest says about the command, the machine and the platform.
Json manifest_of(const std::string& command, const std::vector<std::string>& arguments,
                 const std::string& platform);

/// Whether an NVIDIA device node exists.
bool machine_has_gpu();

void print(const std::string& text);
void print_json(const Json& json);

}  // namespace cb::cli
