#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/file.h"
#include "base/text.h"
#include "base/tty.h"
#include "harness/cli/command.h"
#include "harness/cli/profile_text.h"
#include "harness/cli/render.h"
#include "harness/observe.h"
#include "harness/score.h"
#include "results/finding_text.h"

namespace cb::cli {
namespace {

struct RunOptions {
  std::string task;
  std::string candidate;
  std::string platform = "sim:h100x8";
  std::string run_key;
  std::string runs_folder = "runs";
  bool profile = false;
  bool trace = false;
};

/// What --profile and --trace ask for: the slowest measured case once more, observed.
std::optional<harness::Observation> observe(const Common& common, const RunOptions& options,
                                            harness::Platform& platform, const RunKey& key,
                                            const harness::ScoreItem& item,
                                            const results::Record& record,
                                            const results::RunDirectory& directory,
                                            Progress& progress) {
  if (!options.profile && !options.trace) return std::nullopt;
  std::string case_id = harness::case_to_observe(record);
  if (case_id.empty()) return std::nullopt;
  harness::Observation seen = harness::observe(
      common.layout, platform,
      {.card = item.card,
       .candidate = &item.candidate,
       .key = &key,
       .case_id = case_id,
       .profile = options.profile,
       .timeline = options.trace},
      [&](const std::string& line) { progress.update("observing: " + printable(line, 200)); });
  std::string folder = directory.attempt_folder(record.task, record.attempt);
  if (options.profile) write_file(folder + "/profile.json", dump_json_pretty(seen.profile));
  if (options.trace) write_file(folder + "/trace.json", dump_json(seen.timeline));
  return seen;
}

int run(const Common& common, const RunOptions& options) {
  tasks::Card card = find_task(common, options.task);
  harness::ScoreItem item{&card, harness::Candidate::load(options.candidate)};
  RunKey key = run_key_of(options.run_key);
  std::unique_ptr<harness::Platform> platform =
      harness::make_platform(options.platform, common.layout);
  results::RunDirectory directory = results::RunDirectory::create(
      options.runs_folder, manifest_of("run", {options.task, options.candidate}, platform->name()));

  Progress progress(common.quiet);
  harness::ScoreOptions score_options;
  score_options.on_progress = [&](const std::string& line) {
    progress.update(printable(line, 200));
  };
  results::Record record =
      harness::score(common.layout, *platform, key, {item}, directory, score_options).front();
  std::optional<harness::Observation> seen =
      observe(common, options, *platform, key, item, record, directory, progress);
  progress.clear();
  directory.extend_manifest({{"run_key", key.hex()}, {"finished", true}});

  if (common.json) {
    Json json;
    json["run"] = directory.path();
    json["run_key"] = key.hex();
    json["record"] = to_json(record);
    if (options.profile) json["profile"] = seen ? seen->profile : Json();
    print_json(json);
  } else {
    bool color = use_color(stdout);
    print(fmt::format("{} {}: {}\n", card.id, printable(item.candidate.name, 200),
                      verdict_text(record, color)));
    print(results::finding_text(record) + advice_text(record));
    print("\n" + case_table(record, color) + "\n");
    if (options.profile) print(profile_text(seen ? seen->profile : Json(), color) + "\n");
    print(wall_text(record));
    print(fmt::format("kept in {}; run key {}\n", directory.path(), key.hex()));
  }
  if (record.verdict == results::Verdict::kInfraError) return kInfrastructure;
  return record.verdict == results::Verdict::kPass ? kDone : kDidNotPass;
}

}  // namespace

void add_run(CLI::App& app, const Common& common, int& exit_code) {
  auto options = std::make_shared<RunOptions>();
  CLI::App* command = app.add_subcommand("run", "evaluate one candidate");
  command->add_option("TASK", options->task, "id of a task, or the path of its folder")->required();
  command->add_option("CANDIDATE", options->candidate, "a file, or a folder of sources")
      ->required();
  command->add_option("--platform", options->platform, "where ranks execute")
      ->capture_default_str();
  command->add_option("--run-key", options->run_key,
                      "64 hexadecimal digits that decide every hidden choice; default: random");
  command->add_option("--runs", options->runs_folder, "where run directories are made")
      ->capture_default_str();
  command->add_flag("--profile", options->profile,
                    "show where the slowest measured case spends its time, by source line");
  command->add_flag("--trace", options->trace,
                    "keep a timeline of the slowest measured case as trace.json (Perfetto)");
  command->callback([&common, &exit_code, options] { exit_code = run(common, *options); });
}

}  // namespace cb::cli
