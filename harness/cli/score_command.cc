#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/text.h"
#include "base/tty.h"
#include "harness/cli/command.h"
#include "harness/cli/render.h"
#include "harness/expect.h"
#include "harness/score.h"
#include "results/summary.h"

namespace cb::cli {
namespace {

struct ScoreCommand {
  std::string folder;
  std::string platform = "sim:h100x8";
  std::string run_key;
  std::string expect;
  std::string runs_folder = "runs";
  int jobs = 0;
};

// More lanes than cores only share the cores.
int default_jobs() {
  constexpr unsigned kMost = 4;
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1u, kMost));
}

struct Loaded {
  std::map<std::string, tasks::Card> cards;
  std::vector<harness::ScoreItem> items;
};

void load(const Common& common, const std::string& folder, Loaded& loaded) {
  std::map<std::string, int> attempts;
  for (const harness::CandidateFile& file : harness::find_candidates(folder)) {
    if (!loaded.cards.contains(file.task)) {
      loaded.cards.emplace(file.task, find_task(common, file.task));
    }
    harness::ScoreItem& item = loaded.items.emplace_back();
    item.card = &loaded.cards.at(file.task);
    item.candidate = harness::Candidate::load(file.path);
    item.candidate.name = file.name;
    item.attempt = ++attempts[file.task];
  }
  if (loaded.items.empty()) {
    throw Error(ErrorCode::kUsage,
                fmt::format("{}: no candidates; they are named <task-id>[.<name>].cu", folder));
  }
}

Json to_json(const std::vector<results::Record>& records, const std::vector<std::string>& wrong) {
  Json json;
  json["records"] = Json::array();
  for (const results::Record& record : records) json["records"].push_back(to_json(record));
  json["scores"] = results::to_json(results::summarize(records));
  json["not_as_expected"] = wrong;
  return json;
}

int exit_code_for(const ScoreCommand& options, const std::vector<results::Record>& records,
                  const std::vector<std::string>& wrong) {
  auto has = [&](auto predicate) { return std::any_of(records.begin(), records.end(), predicate); };
  if (has([](const results::Record& record) {
        return record.verdict == results::Verdict::kInfraError;
      })) {
    return kInfrastructure;
  }
  if (!options.expect.empty()) return wrong.empty() ? kDone : kDidNotPass;
  bool failed = has([](const results::Record& record) {
    return record.verdict != results::Verdict::kPass &&
           record.verdict != results::Verdict::kSkipped;
  });
  return failed ? kDidNotPass : kDone;
}

int score(const Common& common, const ScoreCommand& options) {
  Loaded loaded;
  load(common, options.folder, loaded);
  std::vector<harness::Expectation> expected;
  if (!options.expect.empty()) {
    if (!std::filesystem::is_regular_file(options.expect)) {
      throw Error(ErrorCode::kUsage, options.expect + " is no file");
    }
    expected = value_or_throw(harness::load_expectations(options.expect));
  }
  RunKey key = run_key_of(options.run_key);
  std::unique_ptr<harness::Platform> platform =
      harness::make_platform(options.platform, common.layout);
  results::RunDirectory directory = results::RunDirectory::create(
      options.runs_folder, manifest_of("score", {options.folder}, platform->name()));

  Progress progress(common.quiet);
  harness::ScoreOptions score_options;
  score_options.lanes = options.jobs > 0 ? options.jobs : default_jobs();
  score_options.on_progress = [&](const std::string& line) {
    progress.update(printable(line, 200));
  };
  std::vector<results::Record> records =
      harness::score(common.layout, *platform, key, loaded.items, directory, score_options);
  progress.clear();
  directory.extend_manifest({{"run_key", key.hex()}, {"finished", true}});

  std::vector<std::string> wrong;
  if (!options.expect.empty()) wrong = harness::mismatches(expected, records);
  if (common.json) {
    Json json = to_json(records, wrong);
    json["run"] = directory.path();
    json["run_key"] = key.hex();
    print_json(json);
  } else {
    print(score_table(records, use_color(stdout)) + "\n");
    print(score_lines(results::summarize(records)));
    for (const std::string& line : wrong) print("not as expected: " + printable(line, 500) + "\n");
    if (!options.expect.empty() && wrong.empty()) {
      print(fmt::format("all {} candidates are as expected\n", records.size()));
    }
    print(fmt::format("kept in {}; run key {}\n", directory.path(), key.hex()));
  }
  return exit_code_for(options, records, wrong);
}

}  // namespace

void add_score(CLI::App& app, const Common& common, int& exit_code) {
  auto options = std::make_shared<ScoreCommand>();
  CLI::App* command = app.add_subcommand(
      "score", "evaluate every <task-id>[.<name>].cu below a folder and print the table");
  command->add_option("DIR", options->folder, "folder of candidates")->required();
  command->add_option("--platform", options->platform, "where ranks execute")
      ->capture_default_str();
  command->add_option("--expect", options->expect,
                      "file that says what each candidate must be found to be");
  command->add_option("--run-key", options->run_key,
                      "64 hexadecimal digits that decide every hidden choice; default: random");
  command->add_option("--runs", options->runs_folder, "where run directories are made")
      ->capture_default_str();
  command->add_option("--jobs", options->jobs, "evaluations at the same time; default: the cores")
      ->check(CLI::Range(0, 6));
  command->callback([&common, &exit_code, options] { exit_code = score(common, *options); });
}

}  // namespace cb::cli
