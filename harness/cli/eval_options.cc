#include "harness/cli/eval_options.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/text.h"
#include "tasks/suite.h"

namespace cb::cli {
namespace {

template <typename T>
Json or_null(const std::optional<T>& value) {
  return value ? Json(*value) : Json(nullptr);
}

template <typename T>
std::optional<T> optional_at(const Json& json, const char* key) {
  const Json& value = json.at(key);
  return value.is_null() ? std::nullopt : std::optional<T>(value.get<T>());
}

}  // namespace

Json to_json(const EvalCommand& command) {
  Json json;
  json["model"] = command.model;
  json["tasks"] = command.tasks;
  json["platform"] = command.platform;
  json["samples"] = command.samples;
  json["rounds"] = command.rounds;
  json["improve"] = command.improve;
  json["max_output_tokens"] = command.max_output_tokens;
  json["temperature"] = or_null(command.temperature);
  json["max_cost"] = or_null(command.max_cost);
  json["max_tokens"] = or_null(command.max_tokens);
  json["prices"] = command.prices;
  json["record"] = command.record;
  json["strict"] = command.strict;
  json["requests"] = command.requests;
  json["jobs"] = command.jobs;
  return json;
}

EvalCommand eval_command_from(const Json& json) {
  try {
    EvalCommand command;
    json.at("model").get_to(command.model);
    json.at("tasks").get_to(command.tasks);
    json.at("platform").get_to(command.platform);
    json.at("samples").get_to(command.samples);
    json.at("rounds").get_to(command.rounds);
    json.at("improve").get_to(command.improve);
    json.at("max_output_tokens").get_to(command.max_output_tokens);
    command.temperature = optional_at<double>(json, "temperature");
    command.max_cost = optional_at<double>(json, "max_cost");
    command.max_tokens = optional_at<uint64_t>(json, "max_tokens");
    json.at("prices").get_to(command.prices);
    json.at("record").get_to(command.record);
    json.at("strict").get_to(command.strict);
    json.at("requests").get_to(command.requests);
    json.at("jobs").get_to(command.jobs);
    return command;
  } catch (const Json::exception& error) {
    throw Error(ErrorCode::kConfig,
                fmt::format("the manifest's `eval` is incomplete: {}", error.what()));
  }
}

ChosenTasks choose_tasks(const Common& common, const std::string& names) {
  ChosenTasks chosen;
  const std::string suite_path =
      fmt::format("{}/suites/{}.yaml", common.layout.tasks_folder, names);
  if (names.find('/') == std::string::npos && std::filesystem::exists(suite_path)) {
    tasks::Suite suite = value_or_throw(tasks::load_suite(suite_path));
    chosen.cards = tasks::cards_of(suite, find_all_tasks(common));
    chosen.suite_hash = suite.hash;
    return chosen;
  }
  for (const std::string& name : split(names, ',')) chosen.cards.push_back(find_task(common, name));
  return chosen;
}

llm::PriceTable price_table(const EvalCommand& command) {
  return llm::PriceTable::load_file(
      command.prices.empty() ? COMMBENCH_SOURCE_DIR "/search/llm/prices.yaml" : command.prices);
}

}  // namespace cb::cli
