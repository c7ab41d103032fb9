#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <nlohmann/json.hpp>

#include "base/tty.h"
#include "harness/cli/command.h"
#include "harness/cli/sim_trace.h"
#include "harness/cli/sim_validate.h"
#include "simulator/timing/profile.h"

namespace cb::cli {
namespace {

int list_profiles(const Common& common) {
  Json json = Json::array();
  Table table({{"profile"}, {"devices", Table::Align::kRight}, {"target"}, {"description"}});
  for (const std::string& name : sim::profile_names()) {
    sim::Profile profile = value_or_throw(sim::load_profile(name));
    json.push_back({{"name", profile.name},
                    {"devices", profile.num_devices()},
                    {"nodes", profile.num_nodes},
                    {"target", profile.target},
                    {"hash", profile.hash},
                    {"description", profile.description}});
    table.add_row({{profile.name},
                   {fmt::format("{}", profile.num_devices())},
                   {profile.target},
                   {profile.description}});
  }
  if (common.json) {
    print_json(json);
  } else {
    print(table.render(use_color(stdout)));
  }
  return kDone;
}

int bench(const Common& common, const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {common.layout.bench_program};
  if (common.json) words.emplace_back("--json");
  words.insert(words.end(), arguments.begin(), arguments.end());
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  ::execv(argv[0], argv.data());
  throw system_error("run " + common.layout.bench_program);
}

}  // namespace

void add_sim(CLI::App& app, const Common& common, int& exit_code) {
  CLI::App* command = app.add_subcommand("sim", "the simulator itself");
  command->require_subcommand(1);
  command->add_subcommand("profiles", "the hardware that can be simulated")
      ->callback([&common, &exit_code] { exit_code = list_profiles(common); });
  CLI::App* benchmark =
      command->add_subcommand("bench", "how fast this machine simulates fixed kernels");
  benchmark->allow_extras();
  benchmark->callback(
      [&common, &exit_code, benchmark] { exit_code = bench(common, benchmark->remaining()); });

  add_sim_trace(*command, common, exit_code);

  auto options = std::make_shared<ValidateOptions>();
  CLI::App* validate = command->add_subcommand(
      "validate", "run the CUDA programs of tests/cuda here and, where there is one, on a GPU");
  validate->add_option("--filter", options->filter, "only programs with TEXT in their name")
      ->option_text("TEXT");
  validate->add_flag("--functional", options->functional, "simulate without timing");
  validate->callback(
      [&common, &exit_code, options] { exit_code = validate_simulator(common, *options); });
}

}  // namespace cb::cli
