#include "harness/evaluator.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "base/text.h"
#include "harness/build_verdict.h"

namespace cb::harness {
namespace {

using results::Record;
using results::Verdict;
using std::chrono::steady_clock;

double ms_since(steady_clock::time_point start) {
  return std::chrono::duration<double, std::milli>(steady_clock::now() - start).count();
}

build::BuildRequest build_request(const Request& request, const std::string& target,
                                  unsigned box_slot) {
  build::BuildRequest build;
  build.sources = request.candidate->sources;
  build.target = target;
  build.links = request.card->links;
  build.forbidden_includes = request.card->forbidden_includes;
  build.forbidden_symbols = request.card->forbidden_symbols;
  build.box_slot = box_slot;
  return build;
}

void accuse(Record& record, const Evidence& evidence) {
  record.verdict = evidence.verdict;
  record.reason = evidence.reason;
  record.finding = evidence.finding;
}

void fail_infra(Record& record, const std::string& message) {
  Evidence evidence;
  evidence.verdict = Verdict::kInfraError;
  evidence.finding.message = message;
  accuse(record, evidence);
}

// The wall time of a job is that of its first rank; the others waited with it.
void add_times(const Reports& reports, Record& record) {
  for (const RankReport& report : reports) {
    if (report.rank != 0) continue;
    record.wall_launch_ms += report.wall_launch_ms;
    record.wall_simulate_ms += report.wall_simulate_ms;
    record.wall_grade_ms += report.wall_grade_ms;
    if (!report.assurance.empty()) record.wall_jail_assurance = report.assurance;
  }
}

void keep_observations(const Reports& reports, Evaluated& done) {
  for (const RankReport& report : reports) {
    if (report.rank != 0 || report.cases.empty()) continue;
    done.profile = report.cases.back().profile;
    done.timeline = report.cases.back().timeline;
  }
}

bool is_blank(const Candidate& candidate) {
  return std::all_of(candidate.sources.begin(), candidate.sources.end(),
                     [](const build::SourceFile& file) { return trim(file.content).empty(); });
}

bool wanted(const Request& request, const tasks::Case& test_case, int num_devices) {
  const std::vector<std::string>& only = request.only_cases;
  return test_case.world_size <= num_devices &&
         (only.empty() || std::find(only.begin(), only.end(), test_case.id) != only.end());
}

// World sizes in the order in which the card first names them, which is the order of its cases.
std::vector<int> world_sizes(const Request& request, int num_devices) {
  std::vector<int> sizes;
  for (const tasks::Case& test_case : request.card->cases) {
    if (!wanted(request, test_case, num_devices)) continue;
    if (std::find(sizes.begin(), sizes.end(), test_case.world_size) == sizes.end()) {
      sizes.push_back(test_case.world_size);
    }
  }
  return sizes;
}

bool all_complete(const Record& record, const Request& request, int num_devices) {
  for (size_t i = 0; i < record.cases.size(); ++i) {
    if (wanted(request, request.card->cases[i], num_devices) &&
        record.cases[i].verdict != Verdict::kPass) {
      return false;
    }
  }
  return true;
}

}  // namespace

Evaluator::Evaluator(const Layout& layout, Platform& platform, ReferenceTimes& references)
    : layout_(layout),
      platform_(platform),
      references_(references),
      tools_(build::BuildTools::of_this_machine()),
      lane_(platform.open_lane()) {}

Evaluated Evaluator::evaluate(const Request& request,
                              const std::function<void(const std::string&)>& progress) {
  auto start = steady_clock::now();
  Evaluated done = evaluate_once(request, progress);
  // Nobody's fault but ours, unless it happens to this candidate again and not to the reference.
  if (done.record.verdict == Verdict::kInfraError && done.record.reason.empty() &&
      request.with_reference && reference_passes(request, progress)) {
    progress("again, after a failure of ours");
    done = evaluate_once(request, progress);
    if (done.record.verdict == Verdict::kInfraError) {
      done.record.verdict = Verdict::kRuntimeError;
      done.record.reason = "simulator_ended";
      done.record.finding->message +=
          "; it happened twice, and the task's reference runs without it";
    }
  }
  if (done.record.verdict == Verdict::kPass && request.with_reference) {
    add_reference(request, done.record, progress);
  }
  done.record.wall_total_ms = ms_since(start);
  return done;
}

Evaluated Evaluator::evaluate_once(const Request& request,
                                   const std::function<void(const std::string&)>& progress) {
  Evaluated done;
  Record& record = done.record;
  record.task = request.card->id;
  record.task_hash = request.card->hash;
  record.candidate = request.candidate->name;
  record.candidate_sha256 = request.candidate->sha256;
  record.attempt = request.attempt;
  record.platform = platform_.name();
  record.profile_hash = platform_.profile_hash();
  record.simulator_hash = platform_.simulator_hash();
  if (is_blank(*request.candidate)) {
    record.verdict = Verdict::kNoAnswer;
    record.cases = grade_cases(*request.card, *request.key, {});
    return done;
  }
  try {
    progress("building");
    auto start = steady_clock::now();
    build::BuildResult built = build::build_candidate(
        build_request(request, platform_.target(), lane_->build_slot()), tools_);
    record.wall_build_ms = ms_since(start);
    record.wall_build_cached = built.cached;
    record.wall_jail_assurance = built.assurance;
    done.build_log = built.log;
    if (std::optional<Evidence> evidence = evidence_of_build(built)) {
      record.cases = grade_cases(*request.card, *request.key, {});
      accuse(record, *evidence);
      return done;
    }
    Reports reports = run_jobs(request, built, progress);
    add_times(reports, record);
    record.cases = grade_cases(*request.card, *request.key, reports);
    for (const RankReport& report : reports) done.run_log += report.output;
    keep_observations(reports, done);
    std::string infra = infra_failure(*request.card, reports);
    if (const Evidence* evidence = verdict_of(*request.card, reports)) {
      accuse(record, *evidence);
    } else if (!infra.empty()) {
      fail_infra(record, infra);
    } else if (reports.empty()) {
      record.verdict = Verdict::kSkipped;
      record.reason = "too_few_devices";
    } else if (all_complete(record, request, platform_.num_devices())) {
      record.verdict = Verdict::kPass;
    } else {
      fail_infra(record, "not all cases were run, and nothing says why");
    }
  } catch (const Error& error) {
    if (error.code() == ErrorCode::kRefused) throw;
    fail_infra(record, error.message());
  }
  return done;
}

Reports Evaluator::run_jobs(const Request& request, const build::BuildResult& built,
                            const std::function<void(const std::string&)>& progress) {
  Job job;
  job.task_folder = request.card->folder;
  job.task_hash = request.card->hash;
  job.run_key = request.key->hex();
  job.fatbin_sha256 = built.fatbin_sha256;
  const std::vector<std::string>& links = request.card->links;
  job.runtime_code = std::find(links.begin(), links.end(), "nvrtc") != links.end();
  job.cuda_folder = tools_.cuda_folder;
  job.environment = request.environment;
  job.wall_limit_ms = uint64_t{request.card->wall_limit_s} * 1000;
  job.all_cases = request.all_cases;
  job.count_lines = request.count_lines;
  job.record_timeline = request.record_timeline;
  Reports all;
  for (int world_size : world_sizes(request, platform_.num_devices())) {
    job.world_size = world_size;
    job.cases.clear();
    for (const tasks::Case& test_case : request.card->cases) {
      if (test_case.world_size == world_size &&
          wanted(request, test_case, platform_.num_devices())) {
        job.cases.push_back(test_case.id);
      }
    }
    Reports reports = lane_->run(job, built.library, progress);
    all.insert(all.end(), reports.begin(), reports.end());
    // A job that ended early says it all: the others would end the same way, or take as long.
    bool complete = std::all_of(reports.begin(), reports.end(), [&](const RankReport& report) {
      return report.infra.empty() && report.cases.size() == job.cases.size() &&
             report.cases.back().complete;
    });
    if (!complete) break;
  }
  return all;
}

bool Evaluator::reference_passes(const Request& request,
                                 const std::function<void(const std::string&)>& progress) {
  progress("running the reference, to tell a failure of ours from one of the candidate");
  Candidate reference = load_reference(layout_, *request.card);
  Request again = request;
  again.candidate = &reference;
  again.environment.clear();
  again.with_reference = false;
  return evaluate_once(again, progress).record.verdict == Verdict::kPass;
}

void Evaluator::add_reference(const Request& request, Record& record,
                              const std::function<void(const std::string&)>& progress) {
  ReferenceTimes::CaseTimes times =
      references_.get(*request.card, platform_, *request.key, [&](const Candidate& reference) {
        progress("measuring the reference");
        Request measured = request;
        measured.candidate = &reference;
        measured.environment.clear();
        measured.only_cases.clear();
        for (const tasks::Case& test_case : request.card->cases) {
          if (test_case.measured) measured.only_cases.push_back(test_case.id);
        }
        Record other = evaluate_once(measured, progress).record;
        record.wall_build_ms += other.wall_build_ms;
        record.wall_launch_ms += other.wall_launch_ms;
        record.wall_simulate_ms += other.wall_simulate_ms;
        record.wall_grade_ms += other.wall_grade_ms;
        return other;
      });
  for (results::CaseResult& result : record.cases) {
    auto found = times.find(result.id);
    if (found != times.end()) result.reference_ps = found->second;
  }
}

}  // namespace cb::harness
