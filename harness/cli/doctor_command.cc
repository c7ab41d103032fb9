#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/process.h"
#include "base/text.h"
#include "base/tty.h"
#include "harness/build/build.h"
#include "harness/cli/command.h"
#include "sandbox/jail.h"

namespace cb::cli {
namespace {

namespace fs = std::filesystem;

/// One thing that this machine has or lacks.
struct Check {
  std::string name;
  bool ok = false;
  bool required = true;
  std::string detail;
  std::string advice;  ///< how to get it, where it is missing
};

Check check_jail() {
  Check check{"sandbox"};
  try {
    check.detail = jail_assurance();
    check.ok = true;
  } catch (const Error& error) {
    check.detail = error.message();
    check.advice = "candidates are not run without it; ./setup.sh checks what it needs";
  }
  return check;
}

// `word` is in the line of the output that says the version.
Check check_program(const std::string& name, const std::vector<std::string>& argv,
                    const std::string& word, const std::string& advice) {
  Check check{name};
  check.advice = advice;
  try {
    ProcessOptions options;
    options.argv = argv;
    options.env = environment_subset({"PATH", "HOME"});
    CompletedProcess done = run_process(options, 10'000);
    check.ok = done.status.success();
    for (const std::string& line : split(done.standard_output, '\n')) {
      if (line.find(word) != std::string::npos) check.detail = printable(line, 120);
    }
  } catch (const Error& error) {
    check.detail = error.message();
  }
  return check;
}

Check check_file(const std::string& name, const std::string& path) {
  Check check{name};
  check.ok = fs::exists(path);
  check.detail = path;
  check.advice = "./commbench builds it; look at what the build printed";
  return check;
}

Check check_gpu() {
  Check check{"gpu"};
  check.required = false;
  check.ok = machine_has_gpu();
  check.detail = check.ok ? "/dev/nvidia0" : "none; simulated platforms need none";
  return check;
}

std::vector<Check> check_all(const Common& common) {
  build::BuildTools tools = build::BuildTools::of_this_machine();
  return {
      check_jail(),
      check_program("nvcc", {tools.cuda_folder + "/bin/nvcc", "--version"}, "release",
                    "set CUDA_HOME, or ./setup.sh --cuda-from-pypi"),
      check_program("mpirun", {"mpirun", "--version"}, "Open MPI) ",
                    "./setup.sh installs openmpi-bin"),
      check_file("simulator", common.layout.simulator_program),
      check_file("host", common.layout.host_program),
      check_file("ranks", common.layout.rank_program),
      check_gpu(),
  };
}

int doctor(const Common& common) {
  std::vector<Check> checks = check_all(common);
  Json json;
  Table table({{"part"}, {"state"}, {"detail"}});
  bool sandbox = true;
  bool complete = true;
  for (const Check& check : checks) {
    if (!check.ok && check.required) (check.name == "sandbox" ? sandbox : complete) = false;
    json["checks"].push_back({{"name", check.name},
                              {"ok", check.ok},
                              {"required", check.required},
                              {"detail", check.detail},
                              {"advice", check.ok ? "" : check.advice}});
    Color color = check.ok ? Color::kGreen : check.required ? Color::kRed : Color::kDim;
    std::string detail = check.detail;
    if (!check.ok && !check.advice.empty()) detail += " -> " + check.advice;
    table.add_row({{check.name},
                   {check.ok         ? "ok"
                    : check.required ? "missing"
                                     : "-",
                    color},
                   {detail}});
  }
  json["cores"] = std::thread::hardware_concurrency();
  json["cache"] = common.layout.cache_folder;
  if (common.json) {
    print_json(json);
  } else {
    print(table.render(use_color(stdout)));
    print(fmt::format("{} cores; cache in {}\n", std::thread::hardware_concurrency(),
                      common.layout.cache_folder));
  }
  if (!sandbox) return kRefused;
  return complete ? kDone : kInfrastructure;
}

}  // namespace

void add_doctor(CLI::App& app, const Common& common, int& exit_code) {
  app.add_subcommand("doctor", "what this machine can do, and what is missing")
      ->callback([&common, &exit_code] { exit_code = doctor(common); });
}

}  // namespace cb::cli
