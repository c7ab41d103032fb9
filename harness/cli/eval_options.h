#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/json.h"
#include "harness/cli/command.h"
#include "search/eval/eval_run.h"
#include "search/llm/metered_client.h"
#include "search/llm/provider.h"

namespace cb::cli {

/// What `commbench eval` was asked for. All but the last group is kept in the manifest, so that
/// `resume` does the same.
struct EvalCommand {
  std::string model;
  std::string tasks = "core";  ///< a suite, or ids separated by commas
  std::string platform = "sim:h100x8";
  int samples = 1;
  int rounds = 1;
  bool improve = false;
  uint64_t max_output_tokens = 32'000;
  std::optional<double> temperature;

  std::optional<double> max_cost;
  std::optional<uint64_t> max_tokens;
  std::string prices;
  std::string record;
  bool strict = false;
  int requests = 8;
  int jobs = 0;
  std::string runs_folder = "runs";
  std::string run_key;
  std::optional<double> fail_under;
  bool dry_run = false;
};
Json to_json(const EvalCommand& command);
/// Throws Error(kConfig) where `json` is not what to_json writes.
EvalCommand eval_command_from(const Json& json);

/// The tasks of a suite, or those named. `suite_hash` is empty for the latter.
struct ChosenTasks {
  std::vector<tasks::Card> cards;
  std::string suite_hash;
};
ChosenTasks choose_tasks(const Common& common, const std::string& names);

/// Runs, or goes on with, an evaluation in `run` and prints its table; `client` nullptr: that of
/// the command's model. Exit code as for `eval`.
int evaluate(const Common& common, const EvalCommand& command, const ChosenTasks& chosen,
             results::RunDirectory& run, const RunKey& key,
             std::shared_ptr<llm::Client> client = nullptr);

/// The price table of the command, or ours.
llm::PriceTable price_table(const EvalCommand& command);

/// Starts the process that asks the model and keeps the keys, and begins this command anew without
/// keys in its environment. Returns where that has been done, or where no key is needed.
void hand_over_keys(const llm::ModelName& name, const EvalCommand& command);
/// The client of the process that hand_over_keys started; nullptr without one.
std::shared_ptr<llm::Client> adopt_agent();

}  // namespace cb::cli
