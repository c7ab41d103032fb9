#include "results/record.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "metrics/metrics.h"

namespace cb::results {
namespace {

constexpr const char* kVerdictNames[] = {
    "pass",      "wrong_result", "compile_error", "runtime_error", "memory_error",
    "race",      "deadlock",     "timeout",       "forbidden",     "cheating",
    "no_answer", "infra_error",  "skipped"};

Json optional_number(const std::optional<double>& value) {
  return value ? Json(*value) : Json(nullptr);
}

Verdict verdict_at(const Json& json) {
  std::string name = json.at("verdict").get<std::string>();
  std::optional<Verdict> verdict = verdict_from(name);
  if (!verdict) throw Error(ErrorCode::kConfig, fmt::format("unknown verdict \"{}\"", name));
  return *verdict;
}

Json to_json(const CaseResult& result) {
  Json json;
  json["case"] = result.id;
  json["world_size"] = result.world_size;
  json["verdict"] = to_string(result.verdict);
  json["reason"] = result.reason;
  json["measured"] = result.measured;
  json["steps"] = result.steps;
  json["size"] = result.bytes;
  json["count"] = result.count;
  json["type"] = result.type;
  json["redop"] = result.redop;
  json["time_ps"] = result.time_ps;
  json["cold_ps"] = result.cold_ps;
  json["reference_ps"] = result.reference_ps;
  json["bus_factor"] = result.bus_factor;
  json["algbw_gbps"] = result.algbw_gbps();
  json["busbw_gbps"] = result.busbw_gbps();
  json["speedup"] = optional_number(result.speedup());
  json["instructions"] = result.instructions;
  json["wall_ms"] = result.wall_ms;
  return json;
}

CaseResult case_from(const Json& json) {
  CaseResult result;
  result.id = json.at("case").get<std::string>();
  json.at("world_size").get_to(result.world_size);
  result.verdict = verdict_at(json);
  json.at("reason").get_to(result.reason);
  json.at("measured").get_to(result.measured);
  json.at("steps").get_to(result.steps);
  json.at("size").get_to(result.bytes);
  json.at("count").get_to(result.count);
  json.at("type").get_to(result.type);
  json.at("redop").get_to(result.redop);
  json.at("time_ps").get_to(result.time_ps);
  json.at("cold_ps").get_to(result.cold_ps);
  json.at("reference_ps").get_to(result.reference_ps);
  json.at("bus_factor").get_to(result.bus_factor);
  json.at("instructions").get_to(result.instructions);
  json.at("wall_ms").get_to(result.wall_ms);
  return result;
}

Json to_json(const Generation& generation) {
  auto count = [](const std::optional<uint64_t>& value) {
    return value ? Json(*value) : Json(nullptr);
  };
  Json json;
  json["model"] = generation.model;
  json["answered_by"] = generation.answered_by;
  json["sample"] = generation.sample;
  json["round"] = generation.round;
  json["prompt_sha256"] = generation.prompt_sha256;
  json["finish"] = generation.finish;
  json["input_tokens"] = count(generation.input_tokens);
  json["cached_tokens"] = count(generation.cached_tokens);
  json["output_tokens"] = count(generation.output_tokens);
  json["cost_usd"] = optional_number(generation.cost_usd);
  return json;
}

Generation generation_from(const Json& json) {
  auto count = [&](const char* key) {
    const Json& value = json.at(key);
    return value.is_null() ? std::nullopt : std::optional(value.get<uint64_t>());
  };
  Generation generation;
  json.at("model").get_to(generation.model);
  json.at("answered_by").get_to(generation.answered_by);
  json.at("sample").get_to(generation.sample);
  json.at("round").get_to(generation.round);
  json.at("prompt_sha256").get_to(generation.prompt_sha256);
  json.at("finish").get_to(generation.finish);
  generation.input_tokens = count("input_tokens");
  generation.cached_tokens = count("cached_tokens");
  generation.output_tokens = count("output_tokens");
  if (!json.at("cost_usd").is_null()) generation.cost_usd = json["cost_usd"].get<double>();
  return generation;
}

Record read_record(const Json& json) {
  int schema = json.at("schema").get<int>();
  if (schema < 1 || schema > Record::kSchema) {
    throw Error(ErrorCode::kConfig, fmt::format("record of schema {}; this program reads 1 to {}",
                                                schema, Record::kSchema));
  }
  Record record;
  json.at("task").get_to(record.task);
  json.at("task_hash").get_to(record.task_hash);
  json.at("candidate").get_to(record.candidate);
  json.at("candidate_sha256").get_to(record.candidate_sha256);
  json.at("attempt").get_to(record.attempt);
  json.at("platform").get_to(record.platform);
  json.at("profile_hash").get_to(record.profile_hash);
  json.at("simulator_hash").get_to(record.simulator_hash);
  json.at("jail_scope").get_to(record.jail_scope);
  record.verdict = verdict_at(json);
  json.at("reason").get_to(record.reason);
  if (!json.at("finding").is_null()) record.finding = finding_from(json.at("finding"));
  for (const Json& item : json.at("cases")) record.cases.push_back(case_from(item));
  if (schema >= 2 && !json.at("generation").is_null()) {
    record.generation = generation_from(json["generation"]);
  }
  json.at("wall_build_ms").get_to(record.wall_build_ms);
  json.at("wall_launch_ms").get_to(record.wall_launch_ms);
  json.at("wall_simulate_ms").get_to(record.wall_simulate_ms);
  json.at("wall_grade_ms").get_to(record.wall_grade_ms);
  json.at("wall_total_ms").get_to(record.wall_total_ms);
  json.at("wall_build_cached").get_to(record.wall_build_cached);
  json.at("wall_jail_assurance").get_to(record.wall_jail_assurance);
  return record;
}

}  // namespace

const char* to_string(Verdict verdict) { return kVerdictNames[static_cast<size_t>(verdict)]; }

std::optional<Verdict> verdict_from(std::string_view name) {
  for (Verdict verdict : all_verdicts()) {
    if (name == to_string(verdict)) return verdict;
  }
  return std::nullopt;
}

const std::vector<Verdict>& all_verdicts() {
  static const std::vector<Verdict> all = [] {
    std::vector<Verdict> verdicts;
    for (size_t i = 0; i < std::size(kVerdictNames); ++i) {
      verdicts.push_back(static_cast<Verdict>(i));
    }
    return verdicts;
  }();
  return all;
}

Json to_json(const Finding& finding) {
  Json json;
  json["message"] = finding.message;
  json["rank"] = finding.rank;
  json["case"] = finding.case_id;
  json["step"] = finding.step;
  json["time_ps"] = finding.time_ps;
  json["file"] = finding.file;
  json["line"] = finding.line;
  json["details"] = finding.details;
  return json;
}

Finding finding_from(const Json& json) {
  Finding finding;
  json.at("message").get_to(finding.message);
  json.at("rank").get_to(finding.rank);
  json.at("case").get_to(finding.case_id);
  json.at("step").get_to(finding.step);
  json.at("time_ps").get_to(finding.time_ps);
  json.at("file").get_to(finding.file);
  json.at("line").get_to(finding.line);
  finding.details = json.at("details");
  return finding;
}

double CaseResult::algbw_gbps() const { return metrics::algbw_gbps(bytes, time_ps); }

double CaseResult::busbw_gbps() const { return metrics::busbw_gbps(bytes, bus_factor, time_ps); }

std::optional<double> CaseResult::speedup() const {
  if (time_ps == 0 || reference_ps == 0) return std::nullopt;
  return static_cast<double>(reference_ps) / static_cast<double>(time_ps);
}

int Record::cases_passed() const {
  return static_cast<int>(std::count_if(cases.begin(), cases.end(), [](const CaseResult& result) {
    return result.verdict == Verdict::kPass;
  }));
}

std::optional<double> Record::speedup() const {
  if (verdict != Verdict::kPass) return std::nullopt;
  std::vector<double> speedups;
  for (const CaseResult& result : cases) {
    if (!result.measured) continue;
    std::optional<double> speedup = result.speedup();
    if (!speedup) return std::nullopt;
    speedups.push_back(*speedup);
  }
  return metrics::geometric_mean(speedups);
}

const CaseResult* Record::headline() const {
  const CaseResult* best = nullptr;
  for (const CaseResult& result : cases) {
    if (!result.measured || result.time_ps == 0) continue;
    bool larger = best == nullptr || result.bytes > best->bytes ||
                  (result.bytes == best->bytes && result.world_size > best->world_size);
    if (larger) best = &result;
  }
  return best;
}

Json to_json(const Record& record) {
  Json json;
  json["schema"] = Record::kSchema;
  json["task"] = record.task;
  json["task_hash"] = record.task_hash;
  json["candidate"] = record.candidate;
  json["candidate_sha256"] = record.candidate_sha256;
  json["attempt"] = record.attempt;
  json["platform"] = record.platform;
  json["profile_hash"] = record.profile_hash;
  json["simulator_hash"] = record.simulator_hash;
  json["jail_scope"] = record.jail_scope;
  json["verdict"] = to_string(record.verdict);
  json["reason"] = record.reason;
  json["finding"] = record.finding ? to_json(*record.finding) : Json(nullptr);
  json["cases_passed"] = record.cases_passed();
  json["cases_total"] = record.cases.size();
  json["speedup"] = optional_number(record.speedup());
  json["cases"] = Json::array();
  for (const CaseResult& result : record.cases) json["cases"].push_back(to_json(result));
  json["generation"] = record.generation ? to_json(*record.generation) : Json(nullptr);
  json["wall_build_ms"] = record.wall_build_ms;
  json["wall_launch_ms"] = record.wall_launch_ms;
  json["wall_simulate_ms"] = record.wall_simulate_ms;
  json["wall_grade_ms"] = record.wall_grade_ms;
  json["wall_total_ms"] = record.wall_total_ms;
  json["wall_build_cached"] = record.wall_build_cached;
  json["wall_jail_assurance"] = record.wall_jail_assurance;
  return json;
}

Result<Record> record_from(const Json& json) {
  try {
    return read_record(json);
  } catch (const Json::exception& error) {
    return failure(ErrorCode::kConfig, fmt::format("not a record: {}", error.what()));
  } catch (const Error& error) {
    return tl::unexpected<Error>(error);
  }
}

std::string outcome_text(Verdict verdict, const std::string& reason) {
  if (reason.empty()) return to_string(verdict);
  return fmt::format("{}: {}", to_string(verdict), reason);
}

}  // namespace cb::results
