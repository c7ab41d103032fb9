#include "harness/job.h"

namespace cb::harness {
namespace {

Json to_json(const CaseReport& report) {
  Json json;
  json["id"] = report.id;
  json["steps"] = Json::array();
  for (const StepTime& step : report.steps) {
    json["steps"].push_back({step.start_ps, step.end_ps});
  }
  json["evidence"] = Json::array();
  for (const Evidence& evidence : report.evidence) {
    json["evidence"].push_back(harness::to_json(evidence));
  }
  json["complete"] = report.complete;
  json["instructions"] = report.instructions;
  if (!report.profile.is_null()) json["profile"] = report.profile;
  if (!report.timeline.is_null()) json["timeline"] = report.timeline;
  json["wall_ms"] = report.wall_ms;
  return json;
}

CaseReport case_report_from(const Json& json) {
  CaseReport report;
  json.at("id").get_to(report.id);
  for (const Json& step : json.at("steps")) {
    report.steps.push_back({step.at(0).get<uint64_t>(), step.at(1).get<uint64_t>()});
  }
  for (const Json& item : json.at("evidence")) report.evidence.push_back(evidence_from(item));
  json.at("complete").get_to(report.complete);
  json.at("instructions").get_to(report.instructions);
  report.profile = json.value("profile", Json());
  report.timeline = json.value("timeline", Json());
  json.at("wall_ms").get_to(report.wall_ms);
  return report;
}

}  // namespace

Json to_json(const Job& job) {
  Json json;
  json["task_folder"] = job.task_folder;
  json["task_hash"] = job.task_hash;
  json["run_key"] = job.run_key;
  json["world_size"] = job.world_size;
  json["cases"] = job.cases;
  json["profile"] = job.profile;
  json["timed"] = job.timed;
  json["fatbin_sha256"] = job.fatbin_sha256;
  json["runtime_code"] = job.runtime_code;
  json["cuda_folder"] = job.cuda_folder;
  json["environment"] = job.environment;
  json["first_box_slot"] = job.first_box_slot;
  json["wall_limit_ms"] = job.wall_limit_ms;
  json["all_cases"] = job.all_cases;
  json["count_lines"] = job.count_lines;
  json["record_timeline"] = job.record_timeline;
  json["host_program"] = job.host_program;
  json["simulator_program"] = job.simulator_program;
  json["library_folder"] = job.library_folder;
  return json;
}

Job job_from(const Json& json) {
  Job job;
  json.at("task_folder").get_to(job.task_folder);
  json.at("task_hash").get_to(job.task_hash);
  json.at("run_key").get_to(job.run_key);
  json.at("world_size").get_to(job.world_size);
  json.at("cases").get_to(job.cases);
  json.at("profile").get_to(job.profile);
  json.at("timed").get_to(job.timed);
  json.at("fatbin_sha256").get_to(job.fatbin_sha256);
  json.at("runtime_code").get_to(job.runtime_code);
  json.at("cuda_folder").get_to(job.cuda_folder);
  json.at("environment").get_to(job.environment);
  json.at("first_box_slot").get_to(job.first_box_slot);
  json.at("wall_limit_ms").get_to(job.wall_limit_ms);
  json.at("all_cases").get_to(job.all_cases);
  json.at("count_lines").get_to(job.count_lines);
  json.at("record_timeline").get_to(job.record_timeline);
  json.at("host_program").get_to(job.host_program);
  json.at("simulator_program").get_to(job.simulator_program);
  json.at("library_folder").get_to(job.library_folder);
  return job;
}

Json to_json(const RankReport& report) {
  Json json;
  json["rank"] = report.rank;
  json["cases"] = Json::array();
  for (const CaseReport& item : report.cases) json["cases"].push_back(to_json(item));
  json["infra"] = report.infra;
  json["output"] = report.output;
  json["assurance"] = report.assurance;
  json["wall_launch_ms"] = report.wall_launch_ms;
  json["wall_simulate_ms"] = report.wall_simulate_ms;
  json["wall_grade_ms"] = report.wall_grade_ms;
  return json;
}

RankReport rank_report_from(const Json& json) {
  RankReport report;
  json.at("rank").get_to(report.rank);
  for (const Json& item : json.at("cases")) report.cases.push_back(case_report_from(item));
  json.at("infra").get_to(report.infra);
  json.at("output").get_to(report.output);
  json.at("assurance").get_to(report.assurance);
  json.at("wall_launch_ms").get_to(report.wall_launch_ms);
  json.at("wall_simulate_ms").get_to(report.wall_simulate_ms);
  json.at("wall_grade_ms").get_to(report.wall_grade_ms);
  return report;
}

}  // namespace cb::harness
