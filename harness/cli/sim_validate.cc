#include "harness/cli/sim_validate.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <regex>

#include "base/file.h"
#include "base/process.h"
#include "base/text.h"
#include "base/tty.h"
#include "harness/build/build.h"

namespace cb::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kBuildTimeoutMs = 30 * 60 * 1000;
constexpr int kRunTimeoutMs = 120 * 1000;
/// What a program exits with when the machine lacks what it needs.
constexpr int kLacks = 77;

struct Program {
  std::string name;
  std::string feature;  ///< the first sentence of its text
  std::string path;
  int ranks = 1;
};

struct Outcome {
  enum class Kind { kPassed, kFailed, kLacks };
  Kind kind = Kind::kFailed;
  std::string detail;  ///< the first line of what it complained about
};

std::string name_of(const std::optional<Outcome>& outcome) {
  if (!outcome) return "-";
  switch (outcome->kind) {
    case Outcome::Kind::kPassed:
      return "pass";
    case Outcome::Kind::kLacks:
      return "lacks it";
    case Outcome::Kind::kFailed:
      break;
  }
  return "FAIL";
}

/// Of the comment that the text opens with; empty without one.
std::string first_sentence(const std::string& text) {
  std::string comment;
  size_t at = 0;
  while (text.compare(at, 3, "// ") == 0) {
    size_t end = std::min(text.find('\n', at), text.size());
    comment += (comment.empty() ? "" : " ") + text.substr(at + 3, end - at - 3);
    at = std::min(end + 1, text.size());
  }
  return comment.substr(0, comment.find(". "));
}

Program describe(const fs::path& source, const std::string& programs_folder) {
  Program program{.name = source.stem().string()};
  program.path = programs_folder + "/" + program.name;
  std::string text = value_or_throw(read_file(source.string()));
  program.feature = first_sentence(text);
  std::smatch found;
  if (std::regex_search(text, found, std::regex(R"(Ranks ranks\((\d+)\))"))) {
    program.ranks = std::stoi(found[1]);
  }
  return program;
}

std::vector<Program> find_programs(const ValidateOptions& options) {
  std::vector<Program> programs;
  const std::string folder = COMMBENCH_SOURCE_DIR "/tests/cuda";
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().extension() != ".cu") continue;
    if (entry.path().stem().string().find(options.filter) == std::string::npos) continue;
    programs.push_back(describe(entry.path(), COMMBENCH_BINARY_DIR "/tests/cuda"));
  }
  std::sort(programs.begin(), programs.end(),
            [](const Program& a, const Program& b) { return a.name < b.name; });
  if (programs.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("no program in {} has \"{}\" in its name", folder, options.filter));
  }
  return programs;
}

std::vector<std::string> environment() {
  std::vector<std::string> variables;
  for (char** entry = environ; *entry != nullptr; ++entry) variables.emplace_back(*entry);
  return variables;
}

void build_programs(const Common& common) {
  Progress progress(common.quiet);
  progress.update("building tests/cuda");
  ProcessOptions options;
  options.argv = {"cmake", "--build", COMMBENCH_BINARY_DIR, "--target", "cuda_test_programs"};
  options.env = environment();
  CompletedProcess done = run_process(options, kBuildTimeoutMs);
  progress.clear();
  if (!done.status.success()) {
    throw Error(ErrorCode::kSystem,
                fmt::format("{} failed ({}):\n{}{}", fmt::join(options.argv, " "),
                            done.status.describe(), done.standard_output, done.standard_error));
  }
}

Outcome run_one(ProcessOptions options) {
  CompletedProcess done = run_process(options, kRunTimeoutMs);
  Outcome outcome;
  std::string errors(trim(done.standard_error));
  outcome.detail = done.timed_out ? fmt::format("no end after {} s", kRunTimeoutMs / 1000)
                                  : errors.substr(0, errors.find('\n'));
  if (outcome.detail.empty() && !done.status.success()) outcome.detail = done.status.describe();
  if (done.status.success()) outcome = {Outcome::Kind::kPassed, ""};
  if (done.status.code == kLacks) outcome.kind = Outcome::Kind::kLacks;
  return outcome;
}

Outcome run_simulated(const Common& common, const Program& program,
                      const ValidateOptions& validate) {
  ProcessOptions options;
  options.argv = {common.layout.simulator_program, "exec", "--ranks",
                  std::to_string(program.ranks)};
  if (validate.functional) options.argv.emplace_back("--functional");
  options.argv.insert(options.argv.end(), {"--", program.path});
  options.env = environment();
  return run_one(std::move(options));
}

Outcome run_on_hardware(const Program& program) {
  ProcessOptions options;
  options.argv = {program.path};
  for (std::string& variable : environment()) {
    if (variable.rfind("LD_LIBRARY_PATH=", 0) != 0) options.env.push_back(std::move(variable));
  }
  options.env.push_back("LD_LIBRARY_PATH=" + build::BuildTools::of_this_machine().cuda_folder +
                        "/lib64");
  return run_one(std::move(options));
}

/// What the two outcomes say together; empty: nothing to say.
std::string judge(const Outcome& simulated, const std::optional<Outcome>& measured) {
  using Kind = Outcome::Kind;
  if (!measured || measured->kind == Kind::kLacks) {
    return simulated.kind == Kind::kFailed ? simulated.detail : "";
  }
  if (measured->kind == Kind::kPassed) {
    return simulated.kind == Kind::kPassed ? "" : "a bug of the simulator: " + simulated.detail;
  }
  return (simulated.kind == Kind::kPassed ? "the simulator is too kind, or the program is wrong: "
                                          : "the program is wrong: ") +
         measured->detail;
}

}  // namespace

int validate_simulator(const Common& common, const ValidateOptions& options) {
  std::vector<Program> programs = find_programs(options);
  build_programs(common);
  const bool has_gpu = machine_has_gpu();
  Table table({{"program"}, {"simulator"}, {"hardware"}, {"what it is about"}});
  Json json = Json::array();
  size_t passed = 0, remarks = 0;
  std::string remarks_text;
  Progress progress(common.quiet);
  for (size_t at = 0; at < programs.size(); ++at) {
    const Program& program = programs[at];
    progress.update(fmt::format("{}/{} {}", at + 1, programs.size(), program.name));
    Outcome simulated = run_simulated(common, program, options);
    std::optional<Outcome> measured;
    if (has_gpu) measured = run_on_hardware(program);
    std::string remark = judge(simulated, measured);
    passed += simulated.kind == Outcome::Kind::kPassed;
    if (!remark.empty()) {
      ++remarks;
      remarks_text += fmt::format("{}: {}\n", program.name, remark);
    }
    table.add_row({{program.name},
                   {name_of(simulated), remark.empty() ? Color::kPlain : Color::kRed},
                   {name_of(measured)},
                   {program.feature}});
    json.push_back({{"program", program.name},
                    {"simulator", name_of(simulated)},
                    {"hardware", measured ? Json(name_of(measured)) : Json(nullptr)},
                    {"remark", remark}});
  }
  progress.clear();
  if (common.json) {
    print_json(json);
  } else {
    print(table.render(use_color(stdout)));
    print(fmt::format("\n{}{} of {} programs pass on the simulator; {}\n", remarks_text, passed,
                      programs.size(),
                      has_gpu ? fmt::format("{} differ from hardware or fail", remarks)
                              : "this machine has no GPU to compare with"));
  }
  return remarks == 0 ? kDone : kDidNotPass;
}

}  // namespace cb::cli
