// What the end of a phase speaks for. The simulator says what happened in virtual time and the jail
// says how the process ended; the host's own words only ever tell against it.
#include <fmt/format.h>
#include <poll.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "base/text.h"
#include "harness/rank/evaluation.h"

namespace cb::harness {
namespace {

using results::Verdict;
using sim::HostEvent;
using sim::Phase;

// For a jail to report after the simulator saw its connection end, and the other way round.
constexpr int kGraceMs = 2'000;

const char* callback_name(Phase phase) {
  switch (phase) {
    case Phase::kSetup:
      return "cb_setup";
    case Phase::kRun:
      return "cb_run";
    case Phase::kTeardown:
      return "cb_teardown";
    default:
      return "the host";
  }
}

std::string cb_status_name(int32_t status) {
  static constexpr const char* kNames[] = {
      "CB_OK",       "CB_ERR_INVALID", "CB_ERR_PHASE",    "CB_ERR_UNSUPPORTED",
      "CB_ERR_CUDA", "CB_ERR_MEMORY",  "CB_ERR_INTERNAL", "CB_PEER_FAILED"};
  if (status >= 0 && status < static_cast<int32_t>(std::size(kNames))) return kNames[status];
  return fmt::format("{}", status);
}

// By the words of cb::sim::Finding::Kind.
Evidence evidence_of_kind(const std::string& kind) {
  static const std::vector<std::string> kMemory = {
      "out_of_bounds", "use_after_free", "not_permitted",   "read_only",
      "early_access",  "misaligned",     "illegal_address", "stack_overflow"};
  Evidence evidence;
  evidence.reason = kind;
  if (std::find(kMemory.begin(), kMemory.end(), kind) != kMemory.end()) {
    evidence.verdict = Verdict::kMemoryError;
  } else if (kind == "unsupported") {
    evidence.verdict = Verdict::kInfraError;
  }
  return evidence;
}

std::string text_at(const Json& json, const char* key) {
  auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : "";
}

template <typename Number>
Number number_at(const Json& json, const char* key, Number fallback) {
  auto found = json.find(key);
  return found != json.end() && found->is_number() ? found->get<Number>() : fallback;
}

// Where in the candidate's source, as its author names the file.
void take_place(const Json& place, results::Finding& finding) {
  constexpr std::string_view kBuildFolder = "/box/src/";
  finding.rank = number_at(place, "rank", finding.rank);
  finding.file = text_at(place, "file");
  if (finding.file.starts_with(kBuildFolder)) finding.file.erase(0, kBuildFolder.size());
  finding.line = number_at(place, "line", 0);
}

// Who waits for memory holds up those who wait for him at a barrier.
const Json& root_waiter(const Json& waiters) {
  for (const Json& waiter : waiters) {
    if (number_at<uint64_t>(waiter, "address", 0) != 0) return waiter;
  }
  return waiters.front();
}

}  // namespace

void Evaluation::add(Evidence evidence, uint64_t time_ps) {
  results::Finding& finding = evidence.finding;
  if (finding.rank < 0) finding.rank = group_.rank();
  finding.case_id = case_ != nullptr ? case_->id : "";
  if (phase_ == Phase::kRun) finding.step = step_key_.step;
  finding.time_ps = time_ps;
  if (report_.cases.empty()) report_.cases.emplace_back();
  report_.cases.back().evidence.push_back(std::move(evidence));
}

std::optional<HostEvent> Evaluation::next_event(int timeout_ms) {
  std::optional<HostEvent> event = client_->wait(0);
  if (event) return event;
  if (host_->ended(0)) return client_->wait(timeout_ms);
  pollfd waits[] = {{client_->fd(), POLLIN, 0}, {host_->pidfd(), POLLIN, 0}};
  if (::poll(waits, 2, timeout_ms) < 0 && errno != EINTR) throw system_error("poll");
  return client_->wait(0);
}

unsigned Evaluation::await_phase() {
  for (;;) {
    int left = left_ms();
    if (std::optional<HostEvent> event = next_event(host_->ended(0) ? kGraceMs : left)) {
      return judge_event(*event);
    }
    if (host_->ended(0)) {
      // The simulator still believes in it: it left a descriptor behind.
      if (std::optional<HostEvent> event = next_event(kGraceMs)) return judge_event(*event);
      return judge_gone({HostEvent::Kind::kGone, 0, "", 0});
    }
    if (left == 0) {
      Evidence evidence;
      evidence.verdict = Verdict::kTimeout;
      evidence.reason = "wall";
      evidence.finding.message = fmt::format("{} did not come back within the task's {} s",
                                             callback_name(phase_), job_.wall_limit_ms / 1000);
      add(std::move(evidence), UINT64_MAX);
      return kEnded;
    }
  }
}

unsigned Evaluation::judge_event(const HostEvent& event) {
  switch (event.kind) {
    case HostEvent::Kind::kPhaseDone:
      return event.status == host::kOk ? unsigned{kFine} : judge_status(event);
    case HostEvent::Kind::kGone:
      return judge_gone(event);
    case HostEvent::Kind::kDeadlock:
    case HostEvent::Kind::kFinding:
      return judge_report(event);
    case HostEvent::Kind::kTimeLimit:
    case HostEvent::Kind::kWallLimit:
      break;
  }
  Evidence evidence;
  evidence.verdict = Verdict::kTimeout;
  bool wall = event.kind == HostEvent::Kind::kWallLimit;
  evidence.reason = wall ? "wall" : "virtual_time";
  evidence.finding.message =
      wall ? fmt::format("the task's {} s of real time are over", job_.wall_limit_ms / 1000)
           : fmt::format("{} did not come back within {} ms of simulated time",
                         callback_name(phase_), card_->virtual_limit_ms);
  Json report = client_->report();
  evidence.finding.details["hosts"] = report.value("hosts", Json::array());
  evidence.finding.details["waiters"] = report.value("waiters", Json::array());
  add(std::move(evidence), event.time_ps);
  return kEnded;
}

unsigned Evaluation::judge_status(const HostEvent& event) {
  Evidence evidence;
  std::string said = printable(event.error, 500);
  switch (event.status) {
    case host::kException:
      evidence.reason = "exception";
      evidence.finding.message = said;
      break;
    case host::kLoadFailed:
    case host::kNoEntryPoint:
      evidence.reason = "load_failed";
      evidence.finding.message = "the candidate's library could not be loaded: " + said;
      break;
    case host::kDeviceFailed:
      evidence.reason = "cuda_error";
      evidence.finding.message = "the device reports an error " + said;
      break;
    default:
      evidence.reason = "returned_error";
      evidence.finding.message =
          fmt::format("{} returned {}", callback_name(phase_), cb_status_name(event.status));
  }
  // A limit explains why a callback gave up.
  const std::optional<JailOutcome>& outcome = host_->stop(kGraceMs);
  if (outcome && outcome->limit != LimitHit::kNone) {
    Evidence limit = evidence_of_end(*outcome);
    limit.finding.message += "; " + evidence.finding.message;
    evidence = std::move(limit);
  }
  add(std::move(evidence), event.time_ps);
  return kEnded;
}

// Every rank is told when a host is gone, and the other hosts end with the job. Only the first end
// is evidence, and the simulator knows whose it was.
unsigned Evaluation::judge_gone(const HostEvent& event) {
  Json report = client_->report();
  int first = number_at(report.value("end", Json::object()), "rank", group_.rank());
  if (first != group_.rank()) return kEnded;
  Evidence evidence;
  for (const Json& rank : report.value("ranks", Json::array())) {
    if (number_at(rank, "rank", -1) != first || text_at(rank, "protocol_fault").empty()) continue;
    evidence.reason = "disconnected";
    evidence.finding.message =
        "the process sent the device something meaningless: " + text_at(rank, "protocol_fault");
    add(std::move(evidence), event.time_ps);
    return kEnded;
  }
  if (const std::optional<JailOutcome>& outcome = host_->ended(kGraceMs)) {
    evidence = evidence_of_end(*outcome);
    evidence.finding.details["output"] = printable(host_->output(), 1000);
  } else {
    evidence.reason = "disconnected";
    evidence.finding.message = "the process closed its connection to the device and lives on";
  }
  add(std::move(evidence), event.time_ps);
  return kEnded;
}

unsigned Evaluation::judge_report(const HostEvent& event) {
  Json report = client_->report();
  for (const Json& found : report.value("findings", Json::array())) {
    std::string kind = text_at(found, "kind");
    Evidence evidence = evidence_of_kind(kind);
    if (settling_ && kind == "early_access") {
      evidence.verdict = Verdict::kRuntimeError;
      evidence.reason = "late_work";
    }
    take_place(found, evidence.finding);
    evidence.finding.message = text_at(found, "detail");
    if (evidence.reason == "late_work") evidence.finding.message += ", after the rank was done";
    evidence.finding.details = found;
    add(std::move(evidence), number_at<uint64_t>(found, "time_ps", event.time_ps));
  }
  if (event.kind == HostEvent::Kind::kDeadlock) {
    Evidence evidence;
    evidence.verdict = Verdict::kDeadlock;
    Json waiters = report.value("waiters", Json::array());
    if (!waiters.empty()) take_place(root_waiter(waiters), evidence.finding);
    evidence.finding.message =
        fmt::format("nothing can go on: {} groups of threads wait, and no host can act",
                    number_at<uint64_t>(report, "num_waiters", waiters.size()));
    evidence.finding.details["waiters"] = std::move(waiters);
    evidence.finding.details["hosts"] = report.value("hosts", Json::array());
    add(std::move(evidence), event.time_ps);
  }
  return kEnded;
}

}  // namespace cb::harness
