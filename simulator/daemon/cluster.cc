#include "simulator/daemon/cluster.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simulator/daemon/job.h"
#include "simulator/daemon/streams.h"

namespace cb::sim {
namespace {

const Profile& checked(const Profile& profile, const DaemonOptions& options) {
  int most = std::min(profile.num_devices(), static_cast<int>(kMaxRanks));
  if (options.world_size < 1 || options.world_size > most) {
    throw Error(ErrorCode::kConfig, fmt::format("{} ranks on profile {}, which has {} devices",
                                                options.world_size, profile.name, most));
  }
  return profile;
}

}  // namespace

Cluster::Cluster(const DaemonOptions& options_, const Profile& profile_)
    : options(options_),
      profile(checked(profile_, options_)),
      costs(profile),
      memory(options.world_size, profile.num_devices(), profile.device.global_memory_bytes,
             MemoryQuota{}),
      ledger(options.count_lines && options.timed ? std::make_unique<LineLedger>() : nullptr),
      timeline(options.record_timeline ? std::make_unique<Timeline>(profile) : nullptr),
      engine(memory, profile,
             EngineOptions{
                 .timed = options.timed, .ledger = ledger.get(), .observer = timeline.get()}),
      modules(profile, options.any_code ? std::nullopt : std::optional(options.fatbin_sha256)),
      ipc(options.seed),
      virtual_memory(memory, options.world_size),
      pools(memory),
      bootstrap(options.world_size),
      processes(static_cast<size_t>(options.world_size)) {
  memory.set_devices_per_node(profile.devices_per_node);
  if (timeline != nullptr) timeline->watch(engine.resources());
}

DeviceInfo Cluster::device_info(int global_device) const {
  DeviceInfo info = profile.device;
  int local = global_device % profile.devices_per_node;
  std::string bus = fmt::format("0000:{:02x}:00.0", 0x1b + 0x10 * local);
  std::memcpy(info.pci_bus_id, bus.c_str(), std::min(bus.size() + 1, sizeof info.pci_bus_id - 1));
  std::memcpy(info.uuid, "commbench device", sizeof info.uuid);
  info.uuid[14] = static_cast<uint8_t>(global_device >> 8);
  info.uuid[15] = static_cast<uint8_t>(global_device);
  info.copy_engines = profile.copy_engines;
  info.peer_mask = 0;
  for (int peer = 0; peer < profile.devices_per_node; ++peer) {
    if (peer != local) info.peer_mask |= uint32_t{1} << peer;
  }
  return info;
}

HostProcess& Cluster::new_process(int rank) {
  auto& slot = processes[static_cast<size_t>(rank)];
  if (slot != nullptr) retired.push_back(std::move(slot));
  slot = std::make_unique<HostProcess>();
  slot->rank = rank;
  slot->node = node_of_rank(rank);
  slot->first_device = slot->node * profile.devices_per_node;
  slot->new_thread(start);
  return *slot;
}

void Cluster::report(Finding finding) {
  constexpr size_t kMaxFindings = 64;
  if (findings.size() >= kMaxFindings) return;
  if (finding.place.rank >= 0) finding.place.device = device_of_rank(finding.place.rank);
  findings.push_back(finding);
  if (job != nullptr) job->finding(finding);
}

void Cluster::kernel_failed(const HostProcess& process) {
  const auto& all = engine.findings();
  auto last = std::find_if(all.rbegin(), all.rend(), [&process](const Finding& finding) {
    return finding.place.rank == process.rank;
  });
  if (job != nullptr && last != all.rend()) job->finding(*last);
}

void Cluster::break_context(HostProcess& process, int device, int error) {
  DeviceContext& context = process.contexts[device];
  if (context.error == 0) context.error = error;
  cancel(*this, process, device);
  // Kernels end by rank; those of another device of the process must not end without notice.
  if (!process.unfinished.empty()) return;
  engine.at(engine.now(), [this, &process] {
    if (process.unfinished.empty()) engine.stop_rank(process.rank);
  });
}

void Cluster::end_process(HostProcess& process, HostProcess::State state) {
  if (!process.is_alive()) return;
  process.state = state;
  for (auto& thread : process.threads) {
    thread->state = ThreadState::kEnded;
    thread->call = {};
    thread->connection.close();
  }
  cancel(*this, process, -1);
  engine.at(engine.now(), [this, rank = process.rank, &process] {
    if (processes[static_cast<size_t>(rank)].get() == &process) engine.stop_rank(rank);
  });
  bootstrap.rank_ended(*this);
  if (job != nullptr) job->process_ended(process);
}

void Cluster::out_of_memory(int rank) {
  report({.kind = Finding::Kind::kLimit,
          .time_ps = engine.now(),
          .place = {.rank = rank},
          .detail = "the job touches more memory than the simulator may occupy"});
  for (auto& process : processes) {
    if (process != nullptr) end_process(*process, HostProcess::State::kGone);
  }
}

std::vector<Finding> Cluster::all_findings() const {
  std::vector<Finding> all = engine.findings();
  all.insert(all.end(), findings.begin(), findings.end());
  std::stable_sort(all.begin(), all.end(), [](const Finding& one, const Finding& other) {
    return one.time_ps < other.time_ps;
  });
  return all;
}

}  // namespace cb::sim
