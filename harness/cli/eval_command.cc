#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/file.h"
#include "base/text.h"
#include "base/tty.h"
#include "harness/cli/eval_options.h"
#include "harness/cli/render.h"
#include "results/summary.h"
#include "search/eval/scores.h"

namespace cb::cli {
namespace {

constexpr int kMostLanes = 4;

int lanes_of(const EvalCommand& command) {
  if (command.jobs > 0) return command.jobs;
  return static_cast<int>(
      std::clamp(std::thread::hardware_concurrency(), 1u, static_cast<unsigned>(kMostLanes)));
}

eval::EvalPlan plan_of(const EvalCommand& command, const ChosenTasks& chosen) {
  eval::EvalPlan plan;
  for (const tasks::Card& card : chosen.cards) plan.cards.push_back(&card);
  plan.model = llm::parse_model_name(command.model).record_name();
  plan.samples = command.samples;
  plan.rounds = command.rounds;
  plan.improve = command.improve;
  plan.max_output_tokens = command.max_output_tokens;
  plan.temperature = command.temperature;
  return plan;
}

std::string cost_text(const std::optional<double>& cost) {
  return cost ? fmt::format("{:.4f} USD", *cost) : "unknown";
}

/// Progress for people, with the time that is left at the present pace.
class EvalMeter {
 public:
  explicit EvalMeter(Progress& progress) : progress_(progress) {}

  void show(const eval::EvalProgress& now) {
    if (!first_finished_) first_finished_ = now.finished;
    std::string left;
    size_t done = now.finished - *first_finished_;
    if (done > 0 && now.finished < now.conversations) {
      std::chrono::duration<double> spent = std::chrono::steady_clock::now() - start_;
      double per_one = spent.count() / static_cast<double>(done);
      left = fmt::format(", about {:.0f} s left",
                         per_one * static_cast<double>(now.conversations - now.finished));
    }
    progress_.update(
        fmt::format("{}/{} conversations, {} passed, {} requests ({} at a time), cost {}{}",
                    now.finished, now.conversations, now.passed, now.requests, now.concurrency,
                    cost_text(now.cost_usd), left));
  }

 private:
  Progress& progress_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::optional<size_t> first_finished_;
};

int dry_run(const Common& common, const EvalCommand& command, const ChosenTasks& chosen) {
  eval::EvalPlan plan = plan_of(command, chosen);
  llm::PriceTable prices = price_table(command);
  eval::Estimate estimate =
      eval::estimate(plan, common.layout.tasks_folder, prices.find(command.model));
  if (common.json) {
    print_json(
        {{"requests_at_most", estimate.requests},
         {"input_tokens_at_most", estimate.input_tokens},
         {"output_tokens_at_most", estimate.output_tokens},
         {"cost_usd_at_most", estimate.cost_usd ? Json(*estimate.cost_usd) : Json(nullptr)}});
    return kDone;
  }
  print(
      fmt::format("{} tasks, {} samples, {} rounds: at most {} requests\n"
                  "input tokens   at most {} (4 bytes each)\n"
                  "output tokens  at most {}\n"
                  "cost           {}\n",
                  chosen.cards.size(), plan.samples, plan.rounds, estimate.requests,
                  estimate.input_tokens, estimate.output_tokens,
                  estimate.cost_usd ? fmt::format("at most {:.2f} USD", *estimate.cost_usd)
                                    : "unknown: the model has no price in the table"));
  return kDone;
}

std::string key_path(const results::RunDirectory& run) { return run.path() + "/run.key"; }

/// Where an interrupted run finds its key again. Only its owner can read it.
void keep_key(const results::RunDirectory& run, const RunKey& key) {
  write_file(key_path(run), key.hex());
  ::chmod(key_path(run).c_str(), 0600);
}

int start(const Common& common, const EvalCommand& command) {
  llm::ModelName name = llm::parse_model_name(command.model);
  ChosenTasks chosen = choose_tasks(common, command.tasks);
  if (command.dry_run) return dry_run(common, command, chosen);
  hand_over_keys(name, command);
  RunKey key = run_key_of(command.run_key);
  Json manifest = manifest_of("eval", {command.model}, command.platform);
  manifest["eval"] = to_json(command);
  manifest["suite_hash"] = chosen.suite_hash;
  for (const tasks::Card& card : chosen.cards) manifest["task_hashes"][card.id] = card.hash;
  results::RunDirectory run =
      results::RunDirectory::create(command.runs_folder, std::move(manifest));
  keep_key(run, key);
  return evaluate(common, command, chosen, run, key);
}

int resume(const Common& common, const std::string& path) {
  results::RunDirectory run = results::RunDirectory::open(path);
  if (!run.manifest().contains("eval")) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: only runs of `eval` can be resumed; this one is a run of `{}`",
                            path, run.manifest().value("command", "?")));
  }
  EvalCommand command = eval_command_from(run.manifest()["eval"]);
  ChosenTasks chosen = choose_tasks(common, command.tasks);
  for (const tasks::Card& card : chosen.cards) {
    std::string then = run.manifest()["task_hashes"].value(card.id, "");
    if (then != card.hash) {
      throw Error(ErrorCode::kConfig,
                  fmt::format("{}: task {} changed since; start a new run", path, card.id));
    }
  }
  hand_over_keys(llm::parse_model_name(command.model), command);
  bool is_over = run.manifest().value("finished", false);
  std::string hex = is_over ? run.manifest().at("run_key").get<std::string>()
                            : value_or_throw(read_file(key_path(run)));
  return evaluate(common, command, chosen, run, RunKey::from_hex(hex));
}

Json outcome_json(const results::RunDirectory& run, const eval::EvalOutcome& outcome,
                  const std::vector<results::Record>& records, const eval::EvalScores& scores) {
  Json json;
  json["run"] = run.path();
  json["complete"] = !outcome.stopped_by;
  json["stopped_by"] = outcome.stopped_by ? Json(outcome.stopped_by->message) : Json(nullptr);
  json["scores"] = eval::to_json(scores);
  json["records"] = Json::array();
  for (const results::Record& record : records) json["records"].push_back(to_json(record));
  return json;
}

}  // namespace

int evaluate(const Common& common, const EvalCommand& command, const ChosenTasks& chosen,
             results::RunDirectory& run, const RunKey& key, std::shared_ptr<llm::Client> client) {
  std::unique_ptr<harness::Platform> platform =
      harness::make_platform(command.platform, common.layout);
  llm::PriceTable prices = price_table(command);
  const llm::Price* price = prices.find(command.model);
  if (client == nullptr) client = adopt_agent();
  if (client == nullptr) {
    llm::ConnectOptions connect;
    connect.record_folder = command.record;
    connect.strict = command.strict;
    client = llm::connect(llm::parse_model_name(command.model), connect);
  }
  auto meter =
      std::make_shared<llm::Meter>(llm::Budget{command.max_cost, command.max_tokens}, price);
  meter->add(eval::spending_of(value_or_throw(results::read_records(run.path()))));
  std::unique_ptr<llm::Client> metered = llm::metered_client(client, meter);

  Progress progress(common.quiet);
  EvalMeter shown(progress);
  eval::EvalOptions options;
  options.most_requests = static_cast<size_t>(command.requests);
  options.lanes = lanes_of(command);
  if (price != nullptr) options.price = *price;
  options.on_progress = [&](const eval::EvalProgress& now) { shown.show(now); };
  eval::EvalPlan plan = plan_of(command, chosen);
  eval::EvalOutcome outcome =
      eval::evaluate_model(common.layout, *platform, key, plan, *metered, run, options);
  progress.clear();
  if (!outcome.stopped_by) {
    run.extend_manifest({{"run_key", key.hex()}, {"finished", true}});
    std::filesystem::remove(key_path(run));
  }

  std::vector<results::Record> records =
      eval::last_of_each(value_or_throw(results::read_records(run.path())));
  eval::EvalScores scores = eval::eval_scores(records, plan.samples);
  if (common.json) {
    print_json(outcome_json(run, outcome, records, scores));
  } else {
    print(score_table(records, use_color(stdout)) + "\n");
    print(fmt::format("{} on {}\n", printable(plan.model, 200), command.platform));
    print(eval::score_text(scores));
    print(fmt::format("kept in {}\n", run.path()));
  }
  if (outcome.stopped_by) {
    fmt::print(stderr, "commbench: stopped: {}\n  `commbench resume {}` goes on\n",
               printable(outcome.stopped_by->message, 1000), run.path());
    return kInfrastructure;
  }
  return command.fail_under && scores.pass_rate < *command.fail_under ? kDidNotPass : kDone;
}

void add_eval(CLI::App& app, const Common& common, int& exit_code) {
  auto options = std::make_shared<EvalCommand>();
  CLI::App* command =
      app.add_subcommand("eval", "let a model write candidates, evaluate them, and score it");
  command->add_option("--model", options->model, "openai/NAME, anthropic/NAME, cmd:..., ...")
      ->required()
      ->option_text("MODEL");
  command->add_option("--tasks", options->tasks, "a suite, or ids separated by commas")
      ->capture_default_str();
  command->add_option("--samples", options->samples, "independent conversations for each task")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_option("--rounds", options->rounds, "answers in a conversation at most")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command->add_flag("--improve", options->improve, "go on after a pass, for speed");
  command->add_option("--platform", options->platform, "where ranks execute")
      ->capture_default_str();
  command->add_option("--max-output-tokens", options->max_output_tokens, "of one answer")
      ->capture_default_str();
  command->add_option("--temperature", options->temperature, "default: the model's own");
  command->add_option("--max-cost", options->max_cost, "USD; checked before every request");
  command->add_option("--max-tokens", options->max_tokens, "of the run; checked likewise");
  command->add_option("--prices", options->prices, "a price table, in place of ours")
      ->option_text("FILE");
  command->add_option("--record", options->record, "keep all replies in this cassette")
      ->option_text("FOLDER");
  command->add_flag("--strict", options->strict,
                    "of a cassette: replay only what was asked exactly so");
  command->add_option("--requests", options->requests, "requests at a time at most")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  command->add_option("--jobs", options->jobs, "evaluations at a time; default: the cores")
      ->check(CLI::Range(0, 6));
  command->add_option("--fail-under", options->fail_under, "exit code 1 below this pass rate");
  command->add_option("--run-key", options->run_key,
                      "64 hexadecimal digits that decide every hidden choice; default: random");
  command->add_option("--runs", options->runs_folder, "where run directories are made")
      ->capture_default_str();
  command->add_flag("--dry-run", options->dry_run, "say what it would take, and ask nobody");
  command->callback([&common, &exit_code, options] { exit_code = start(common, *options); });
}

void add_resume(CLI::App& app, const Common& common, int& exit_code) {
  auto path = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("resume", "go on with an interrupted run of `eval`");
  command->add_option("RUN", *path, "its run directory")->required();
  command->callback([&common, &exit_code, path] { exit_code = resume(common, *path); });
}

}  // namespace cb::cli
