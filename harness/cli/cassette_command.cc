#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.h"
#include "harness/cli/eval_options.h"
#include "search/llm/cassette.h"

namespace cb::cli {
namespace {

namespace fs = std::filesystem;

struct RekeyOptions {
  std::string folder;
  EvalCommand command;
};

/// Evaluates once more, with the old replies for the present questions.
int rekey(const Common& common, const RekeyOptions& options) {
  TempDir made("commbench-rekey-");
  auto old_tape = std::make_shared<llm::Cassette>(options.folder);
  auto new_tape = std::make_shared<llm::Cassette>(made.path());
  EvalCommand command = options.command;
  command.model = "cassette:" + options.folder;
  ChosenTasks chosen = choose_tasks(common, command.tasks);
  results::RunDirectory run = results::RunDirectory::create(made.path() + "/runs", Json::object());
  Common quiet = common;
  quiet.json = false;
  int code = evaluate(quiet, command, chosen, run, run_key_of(command.run_key),
                      llm::rekeying_client(old_tape, new_tape));
  if (code != kDone) return code;
  write_file(options.folder + "/replies.jsonl",
             value_or_throw(read_file(made.path() + "/replies.jsonl")));
  print(fmt::format("{}: {} of {} replies are kept, under the present prompts\n", options.folder,
                    new_tape->size(), old_tape->size()));
  return kDone;
}

}  // namespace

void add_cassette(CLI::App& app, const Common& common, int& exit_code) {
  auto options = std::make_shared<RekeyOptions>();
  CLI::App* command = app.add_subcommand("cassette", "recorded replies of models");
  command->require_subcommand(1);
  CLI::App* rekey_command = command->add_subcommand(
      "rekey", "keep the replies of a cassette after prompts, tasks or findings changed");
  rekey_command->add_option("FOLDER", options->folder, "the cassette")
      ->required()
      ->check(CLI::ExistingDirectory);
  EvalCommand& eval = options->command;
  rekey_command->add_option("--tasks", eval.tasks, "as it was recorded")->capture_default_str();
  rekey_command->add_option("--samples", eval.samples, "as it was recorded")->capture_default_str();
  rekey_command->add_option("--rounds", eval.rounds, "as it was recorded")->capture_default_str();
  rekey_command->add_option("--run-key", eval.run_key, "as it was recorded");
  rekey_command->callback([&common, &exit_code, options] { exit_code = rekey(common, *options); });
}

}  // namespace cb::cli
