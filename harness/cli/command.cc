#include "harness/cli/command.h"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/process.h"
#include "base/text.h"

namespace cb::cli {
namespace {

namespace fs = std::filesystem;

std::string git_output(std::vector<std::string> arguments) {
  ProcessOptions options;
  options.argv = {"git", "-C", COMMBENCH_SOURCE_DIR};
  options.argv.insert(options.argv.end(), arguments.begin(), arguments.end());
  options.env = environment_subset({"PATH", "HOME"});
  try {
    CompletedProcess done = run_process(options, 10'000);
    return done.status.success() ? std::string(trim(done.standard_output)) : "";
  } catch (const Error&) {
    // No git: the manifest goes without.
    return "";
  }
}

}  // namespace

int exit_code_of(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
    case ErrorCode::kConfig:
      return kUsage;
    case ErrorCode::kRefused:
      return kRefused;
    default:
      return kInfrastructure;
  }
}

std::vector<tasks::FoundTask> find_all_tasks(const Common& common) {
  std::vector<std::string> folders = {common.layout.tasks_folder};
  folders.insert(folders.end(), common.task_dirs.begin(), common.task_dirs.end());
  return tasks::find_tasks(folders);
}

tasks::Card find_task(const Common& common, const std::string& name) {
  if (name.find('/') != std::string::npos) return value_or_throw(tasks::load_card(name));
  std::vector<std::string> known;
  for (tasks::FoundTask& found : find_all_tasks(common)) {
    if (found.id == name) return value_or_throw(std::move(found.card));
    known.push_back(found.id);
  }
  std::optional<std::string> close = closest(name, known);
  throw Error(ErrorCode::kUsage, fmt::format("no task \"{}\"{}", name,
                                             close ? fmt::format("; did you mean {}?", *close)
                                                   : "; `commbench task list` lists them"));
}

RunKey run_key_of(const std::string& hex) {
  return hex.empty() ? RunKey::random() : RunKey::from_hex(hex);
}

Json manifest_of(const std::string& command, const std::vector<std::string>& arguments,
                 const std::string& platform) {
  utsname machine{};
  ::uname(&machine);
  Json json;
  json["command"] = command;
  json["arguments"] = arguments;
  json["platform"] = platform;
  json["git_commit"] = git_output({"rev-parse", "HEAD"});
  json["git_clean"] = git_output({"status", "--porcelain", "--untracked-files=no"}).empty();
  json["wall_host"]["name"] = machine.nodename;
  json["wall_host"]["kernel"] = machine.release;
  json["wall_host"]["cores"] = std::thread::hardware_concurrency();
  return json;
}

bool machine_has_gpu() { return fs::exists("/dev/nvidia0"); }

void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

void print_json(const Json& json) { print(dump_json_pretty(json)); }

}  // namespace cb::cli
