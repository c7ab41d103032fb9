#include "simulator/daemon/report.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "simulator/daemon/host_functions.h"
#include "simulator/daemon/job.h"

namespace cb::sim {
namespace {

constexpr size_t kMaxWaiters = 16;

Json place_json(const CodePlace& place) {
  Json json;
  json["rank"] = place.rank;
  json["device"] = place.device;
  json["kernel"] = place.kernel;
  json["file"] = place.file;
  json["line"] = place.line;
  json["instruction"] = place.instruction;
  json["ptx_line"] = place.ptx_line;
  json["block"] = {place.block[0], place.block[1], place.block[2]};
  json["thread"] = {place.thread[0], place.thread[1], place.thread[2]};
  return json;
}

Json finding_json(const Finding& finding) {
  Json json;
  json["kind"] = to_string(finding.kind);
  json["time_ps"] = finding.time_ps;
  json.update(place_json(finding.place));
  json["detail"] = finding.detail;
  json["address"] = finding.address;
  json["bytes"] = finding.bytes;
  json["write"] = finding.write;
  return json;
}

Json waiter_json(const Waiter& waiter) {
  Json json = place_json(waiter.place);
  json["num_threads"] = waiter.num_threads;
  json["waits_for"] = waiter.waits_for;
  json["address"] = waiter.address;
  json["value"] = waiter.value;
  return json;
}

const char* state_name(ThreadState state) {
  switch (state) {
    case ThreadState::kRunning:
    case ThreadState::kPending:
      return "running";
    case ThreadState::kBlocked:
      return "waiting";
    case ThreadState::kEnded:
      return "ended";
  }
  return "ended";
}

Json rank_json(const Cluster& cluster, const HostProcess& process) {
  EngineStats stats = cluster.engine.stats(process.rank);
  Json json;
  json["rank"] = process.rank;
  json["warp_instructions"] = stats.warp_instructions;
  json["lane_instructions"] = stats.lane_instructions;
  json["kernels"] = stats.kernels;
  json["blocks"] = stats.blocks;
  json["host_bytes"] = process.host_bytes;
  json["link_bytes"] = Json::array();
  // The engine hands out its resources for changing only; counting changes nothing.
  const Resources& resources = const_cast<Engine&>(cluster.engine).resources();
  int device = cluster.device_of_rank(process.rank);
  for (int peer = 0; peer < cluster.profile.num_devices(); ++peer) {
    uint64_t bytes = peer == device ? 0 : resources.link_bytes(device, peer);
    if (bytes > 0) json["link_bytes"].push_back({{"to", peer}, {"bytes", bytes}});
  }
  json["api_calls"] = Json::object();
  for (const auto& [op, count] : process.api_calls) json["api_calls"][to_string(op)] = count;
  json["protocol_fault"] = process.fault;
  return json;
}

/// Stream memory operations that wait for a value, at most kMaxWaiters.
std::vector<const Work*> waiting_work(const HostProcess& process) {
  std::vector<const Work*> waiting;
  for (const auto& [number, work] : process.unfinished) {
    if (!work->waits_for.empty() && waiting.size() < kMaxWaiters) waiting.push_back(work.get());
  }
  return waiting;
}

}  // namespace

Json make_report(const Cluster& cluster, Time time) {
  Json json;
  json["time_ps"] = time;
  json["profile"] = cluster.profile.name;
  json["timed"] = cluster.options.timed;
  json["end"] = nullptr;
  if (cluster.job != nullptr && cluster.job->end()) {
    const JobEnd& end = *cluster.job->end();
    json["end"] = {{"kind", to_string(end.kind)}, {"rank", end.rank}, {"time_ps", end.time}};
  }
  if (cluster.ledger != nullptr) json["profile_lines"] = cluster.ledger->to_json();
  if (cluster.timeline != nullptr) json["timeline"] = cluster.timeline->to_json(time);
  json["findings"] = Json::array();
  for (const Finding& finding : cluster.all_findings()) {
    json["findings"].push_back(finding_json(finding));
  }
  json["num_waiters"] = cluster.engine.num_waiters();
  json["waiters"] = Json::array();
  for (const Waiter& waiter : cluster.engine.waiters(kMaxWaiters)) {
    json["waiters"].push_back(waiter_json(waiter));
  }
  json["streams"] = Json::array();
  json["hosts"] = Json::array();
  json["ranks"] = Json::array();
  for (const auto& process : cluster.processes) {
    if (process == nullptr) continue;
    json["ranks"].push_back(rank_json(cluster, *process));
    for (const Work* work : waiting_work(*process)) {
      json["streams"].push_back({{"rank", process->rank},
                                 {"device", work->device},
                                 {"stream", work->stream->id},
                                 {"what", work->waits_for}});
    }
    for (const auto& thread : process->threads) {
      if (thread->state == ThreadState::kEnded || is_idle_function_thread(*thread)) continue;
      json["hosts"].push_back({{"rank", process->rank},
                               {"thread", thread->id},
                               {"state", state_name(thread->state)},
                               {"what", thread->call.what},
                               {"time_ps", thread->clock}});
    }
  }
  return json;
}

std::string describe(const CodePlace& place) {
  std::string text = place.kernel.empty() ? "" : place.kernel;
  if (!place.file.empty()) text += fmt::format(", {}:{}", place.file, place.line);
  if (!place.instruction.empty()) {
    text += fmt::format(", block ({},{},{}), thread ({},{},{}): {}", place.block[0], place.block[1],
                        place.block[2], place.thread[0], place.thread[1], place.thread[2],
                        place.instruction);
  }
  return text;
}

std::string describe_report(const Cluster& cluster) {
  std::string text;
  for (const Finding& finding : cluster.all_findings()) {
    text += fmt::format("rank {}: {}: {} ({})\n", finding.place.rank, to_string(finding.kind),
                        finding.detail, describe(finding.place));
  }
  for (const Waiter& waiter : cluster.engine.waiters(kMaxWaiters)) {
    text += fmt::format("rank {}: {} threads wait for {} ({})\n", waiter.place.rank,
                        waiter.num_threads, waiter.waits_for, describe(waiter.place));
  }
  for (const auto& process : cluster.processes) {
    if (process == nullptr) continue;
    if (!process->fault.empty()) {
      text += fmt::format("rank {}: broke the protocol: {}\n", process->rank, process->fault);
    }
    for (const Work* work : waiting_work(*process)) {
      text +=
          fmt::format("rank {}: stream {} {}\n", process->rank, work->stream->id, work->waits_for);
    }
    for (const auto& thread : process->threads) {
      if (thread->state != ThreadState::kBlocked || is_idle_function_thread(*thread)) continue;
      text +=
          fmt::format("rank {}: host thread {} {}\n", process->rank, thread->id, thread->call.what);
    }
  }
  return text;
}

const char* to_string(HostEvent::Kind kind) {
  switch (kind) {
    case HostEvent::Kind::kPhaseDone:
      return "phase_done";
    case HostEvent::Kind::kGone:
      return "gone";
    case HostEvent::Kind::kDeadlock:
      return "deadlock";
    case HostEvent::Kind::kFinding:
      return "finding";
    case HostEvent::Kind::kTimeLimit:
      return "time_limit";
    case HostEvent::Kind::kWallLimit:
      return "wall_limit";
  }
  return "gone";
}

}  // namespace cb::sim
