#include "harness/cli/task_check.h"

#include <fmt/format.h>

#include <map>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "base/tty.h"
#include "harness/evaluator.h"

namespace cb::cli {
namespace {

using harness::Candidate;
using harness::Evaluated;
using results::CaseResult;
using results::Record;
using results::Verdict;

// All cases of a task together, on one core.
constexpr double kMaxSimulateMs = 10'000;

/// Checks tasks one after the other on one lane.
class Checker {
 public:
  Checker(const Common& common, const CheckOptions& options)
      : common_(common),
        options_(options),
        key_(run_key_of(options.run_key)),
        platform_(harness::make_platform(options.platform, common.layout)),
        references_(common.layout),
        evaluator_(common.layout, *platform_, references_),
        progress_(common.quiet) {}

  /// What is wrong with the task, one line each.
  std::vector<std::string> check(const tasks::Card& card, Json& json);

 private:
  Record evaluate(const tasks::Card& card, const Candidate& candidate, const std::string& what,
                  const std::string& mode = "", const std::vector<std::string>& only_cases = {});
  void check_reference(const tasks::Card& card, Json& json);
  void check_wrong(const tasks::Card& card, Json& json);
  void report_cost(const Record& record, Json& json);

  const Common& common_;
  const CheckOptions& options_;
  RunKey key_;
  std::unique_ptr<harness::Platform> platform_;
  harness::ReferenceTimes references_;
  harness::Evaluator evaluator_;
  Progress progress_;
  std::vector<std::string> wrong_;
};

Record Checker::evaluate(const tasks::Card& card, const Candidate& candidate,
                         const std::string& what, const std::string& mode,
                         const std::vector<std::string>& only_cases) {
  harness::Request request;
  request.card = &card;
  request.candidate = &candidate;
  request.key = &key_;
  request.with_reference = false;
  request.only_cases = only_cases;
  if (!mode.empty()) request.environment = {"COMMBENCH_WRONG_MODE=" + mode};
  Evaluated done = evaluator_.evaluate(request, [&](const std::string& line) {
    progress_.update(fmt::format("{}: {}: {}", card.id, what, printable(line, 100)));
  });
  return done.record;
}

std::string why(const Record& record) {
  std::string text = results::outcome_text(record.verdict, record.reason);
  if (record.finding) {
    text += fmt::format(" in case {}: {}", record.finding->case_id,
                        printable(record.finding->message, 300));
  }
  return text;
}

void Checker::report_cost(const Record& record, Json& json) {
  Table table({{"case"},
               {"ranks", Table::Align::kRight},
               {"warp instructions", Table::Align::kRight},
               {"seconds", Table::Align::kRight}});
  for (const CaseResult& result : record.cases) {
    json["cost"].push_back(
        {{"case", result.id}, {"instructions", result.instructions}, {"wall_ms", result.wall_ms}});
    table.add_row({{result.id},
                   {fmt::format("{}", result.world_size)},
                   {fmt::format("{}", result.instructions)},
                   {fmt::format("{:.2f}", result.wall_ms / 1e3)}});
  }
  json["wall_simulate_ms"] = record.wall_simulate_ms;
  if (!common_.json) {
    progress_.clear();
    print(fmt::format("{}: {:.2f} s to simulate\n{}", record.task, record.wall_simulate_ms / 1e3,
                      table.render(use_color(stdout))));
  }
  if (record.wall_simulate_ms > kMaxSimulateMs) {
    wrong_.push_back(fmt::format("its cases take {:.1f} s to simulate; {:.0f} s is the limit",
                                 record.wall_simulate_ms / 1e3, kMaxSimulateMs / 1e3));
  }
}

void Checker::check_reference(const tasks::Card& card, Json& json) {
  Record record = evaluate(card, harness::load_reference(common_.layout, card), "reference");
  json["reference"] = to_json(record);
  if (record.verdict != Verdict::kPass) {
    wrong_.push_back("the reference does not pass: " + why(record));
  }
  if (options_.cost) report_cost(record, json);
  Record starter = evaluate(card, Candidate::load(card.folder + "/starter.cu"), "starter");
  json["starter"] = to_string(starter.verdict);
  if (starter.verdict == Verdict::kPass || starter.verdict == Verdict::kCompileError) {
    wrong_.push_back("the starter must compile and not pass: " + why(starter));
  }
}

void Checker::check_wrong(const tasks::Card& card, Json& json) {
  std::map<std::string, std::vector<std::string>> cases_of_mode;
  for (const tasks::Case& test_case : card.cases) {
    for (const std::string& mode : card.family->wrong_modes(test_case)) {
      cases_of_mode[mode].push_back(test_case.id);
      auto& all = cases_of_mode["correct"];
      if (all.empty() || all.back() != test_case.id) all.push_back(test_case.id);
    }
  }
  if (cases_of_mode.empty()) wrong_.push_back("no case lets a wrong answer fail");
  std::string file =
      fmt::format("{}/wrong/{}.cu", common_.layout.tasks_folder, card.family->name());
  Candidate candidate = Candidate::load(file);
  for (const auto& [mode, ids] : cases_of_mode) {
    Record record = evaluate(card, candidate, "wrong candidate, " + mode, mode, ids);
    for (const CaseResult& result : record.cases) {
      if (std::find(ids.begin(), ids.end(), result.id) == ids.end()) continue;
      json["wrong"][mode][result.id] = to_string(result.verdict);
      Verdict should = mode == "correct" ? Verdict::kPass : Verdict::kWrongResult;
      if (result.verdict == should) continue;
      wrong_.push_back(
          fmt::format("case {}: the deliberately wrong candidate in mode {} is {}, "
                      "should be {}{}",
                      result.id, mode, results::outcome_text(result.verdict, result.reason),
                      to_string(should), record.finding ? "; " + why(record) : ""));
    }
  }
}

std::vector<std::string> Checker::check(const tasks::Card& card, Json& json) {
  wrong_.clear();
  json["task"] = card.id;
  check_reference(card, json);
  check_wrong(card, json);
  progress_.clear();
  json["wrong_with_it"] = wrong_;
  return wrong_;
}

}  // namespace

int check_tasks(const Common& common, const CheckOptions& options) {
  std::vector<tasks::Card> cards;
  for (const std::string& name : options.tasks) cards.push_back(find_task(common, name));
  if (options.tasks.empty()) {
    for (tasks::FoundTask& found : find_all_tasks(common)) {
      cards.push_back(value_or_throw(std::move(found.card)));
    }
  }
  Checker checker(common, options);
  Json json = Json::array();
  int exit_code = kDone;
  for (const tasks::Card& card : cards) {
    std::vector<std::string> wrong = checker.check(card, json.emplace_back());
    if (!wrong.empty()) exit_code = kDidNotPass;
    if (common.json) continue;
    print(fmt::format("{}: {}\n", card.id, wrong.empty() ? "ok" : "not ok"));
    for (const std::string& line : wrong) print("  " + line + "\n");
  }
  if (common.json) print_json(json);
  return exit_code;
}

}  // namespace cb::cli
