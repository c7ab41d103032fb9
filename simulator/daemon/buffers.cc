// The grader's buffers of a job.

#include <algorithm>

#include "simulator/daemon/job.h"

namespace cb::sim {

uint64_t Job::add_buffer(int rank, const std::string& label, uint64_t bytes, bool peer_access,
                         bool sparse) {
  const Allocation* made = cluster_.memory.allocate({.rank = rank,
                                                     .device = cluster_.device_of_rank(rank),
                                                     .bytes = bytes,
                                                     .kind = Allocation::Kind::kPool,
                                                     .label = label,
                                                     .zeroed = sparse});
  if (made == nullptr) return 0;
  if (peer_access) cluster_.memory.grant_everyone(made->base);
  cluster_.memory.set_open(made->base, false);
  state(rank).buffers.push_back({made->base, bytes, peer_access, 0});
  return made->base;
}

const std::vector<Job::Buffer>& Job::buffers(int rank) const {
  return ranks_[static_cast<size_t>(rank)].buffers;
}

bool Job::share(const std::vector<std::vector<bool>>& multicast) {
  size_t count = multicast.front().size();
  for (size_t rank = 0; rank < ranks_.size(); ++rank) {
    if (multicast[rank] != multicast.front() || ranks_[rank].buffers.size() != count) return false;
  }
  bool is_one_node =
      cluster_.node_of_rank(0) == cluster_.node_of_rank(static_cast<int>(ranks_.size()) - 1);
  if (!is_one_node || cluster_.profile.device.multicast_supported == 0) return true;
  for (size_t index = 0; index < count; ++index) {
    Buffer& first = ranks_.front().buffers[index];
    if (!multicast.front()[index] || first.multicast != 0) continue;
    std::vector<const Allocation*> members;
    for (const RankState& rank : ranks_) {
      if (rank.buffers[index].bytes != first.bytes) return false;
      members.push_back(cluster_.memory.find(rank.buffers[index].base));
    }
    const Allocation* all = cluster_.memory.allocate_multicast(members);
    if (all == nullptr) return false;
    first.multicast = all->base;
    cluster_.memory.grant_everyone(first.multicast);
  }
  return true;
}

void Job::free_buffers(int number) {
  for (const Buffer& buffer : state(number).buffers) {
    cluster_.memory.free(number, buffer.base, Allocation::Kind::kPool);
    if (buffer.multicast != 0) {
      cluster_.memory.free(number, buffer.multicast, Allocation::Kind::kMulticast);
    }
  }
  state(number).buffers.clear();
  cluster_.bootstrap.release(cluster_, number);
}

bool Job::release_buffers(int number) {
  if (state(number).waiting == nullptr && !end_) return false;
  free_buffers(number);
  state(number).case_ended = true;
  bool all = std::all_of(ranks_.begin(), ranks_.end(),
                         [](const RankState& one) { return one.case_ended; });
  if (!all) return true;
  cluster_.bootstrap.reset();
  for (RankState& rank : ranks_) rank.case_ended = false;
  return true;
}

void Job::release(int number) {
  RankState& rank = state(number);
  auto& process = cluster_.processes[static_cast<size_t>(number)];
  if (process != nullptr && process->is_alive()) {
    cluster_.end_process(*process, HostProcess::State::kGone);
  }
  cluster_.engine.stop_rank(number);
  free_buffers(number);
  cluster_.virtual_memory.release_rank(number, -1);
  cluster_.pools.release_rank(number, -1);
  cluster_.memory.free_all(number, -1);
  rank = {};
  rank.released = true;
  bool all =
      std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& one) { return one.released; });
  if (all) reset();
}

void Job::reset() {
  for (RankState& rank : ranks_) rank = {};
  cluster_.start = std::max({cluster_.start, cluster_.engine.now(), settled_until_});
  for (auto& process : cluster_.processes) {
    if (process != nullptr) cluster_.start = std::max(cluster_.start, process->clock());
    if (process != nullptr) cluster_.retired.push_back(std::move(process));
  }
  cluster_.bootstrap.reset();
  cluster_.ipc.reset();
  num_running_steps_ = 0;
  settle_end_ = limit_end_ = kNever;
  end_.reset();
}

}  // namespace cb::sim
