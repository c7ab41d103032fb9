#include "harness/job.h"

#include <gtest/gtest.h>

namespace cb::harness {
namespace {

TEST(JobTest, SurvivesJson) {
  Job job;
  job.task_folder = "/tasks/x";
  job.cases = {"a", "b"};
  job.environment = {"A=b"};
  job.first_box_slot = 20;
  job.all_cases = false;
  EXPECT_EQ(dump_json(to_json(job_from(to_json(job)))), dump_json(to_json(job)));
}

TEST(JobTest, ReportsSurviveJson) {
  RankReport report;
  report.rank = 3;
  CaseReport& one = report.cases.emplace_back();
  one.id = "tail";
  one.steps = {{1, 2}, {3, UINT64_MAX}};
  one.evidence.emplace_back().reason = "late_work";
  one.complete = true;
  report.output = "bytes \xff that are not UTF-8 travel as U+FFFD";
  Json json = value_or_throw(parse_json(dump_json(to_json(report)), "report"));
  RankReport read = rank_report_from(json);
  EXPECT_EQ(read.cases[0].steps[1].end_ps, UINT64_MAX);
  EXPECT_EQ(read.cases[0].evidence[0].reason, "late_work");
  EXPECT_EQ(dump_json(to_json(read)), dump_json(to_json(report)));
}

}  // namespace
}  // namespace cb::harness
