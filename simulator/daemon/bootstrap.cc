#include "simulator/daemon/bootstrap.h"

#include <algorithm>

#include "simulator/daemon/call.h"
#include "simulator/daemon/job.h"

namespace cb::sim {

void Bootstrap::join(Call& call, uint64_t bytes, const char* what,
                     const std::function<void()>& fill) {
  if (call.cluster.job != nullptr && call.cluster.job->forbids_bootstrap(call.process.rank)) {
    return call.fail(kCbPhase);
  }
  if (broken_) return call.fail(kCbPeerFailed);
  Entry& entry = entries_[static_cast<size_t>(call.process.rank)];
  if (entry.thread != nullptr) return call.fail(kCbInvalid);
  entry.thread = &call.thread;
  entry.op = call.request.op;
  entry.bytes = bytes;
  entry.payload.assign(call.payload.begin(), call.payload.end());
  if (fill) fill();
  BlockedCall blocked;
  blocked.what = what;
  call.wait(std::move(blocked));
  if (++num_waiting_ == entries_.size()) complete(call.cluster);
}

void Bootstrap::allgather(Call& call) {
  if (call.payload.size() > kMaxPayloadBytes / entries_.size()) return call.fail(kCbInvalid);
  join(call, call.payload.size(), "waits for other ranks in cb_allgather");
}

void Bootstrap::barrier(Call& call) { join(call, 0, "waits for other ranks in cb_barrier"); }

void Bootstrap::sym_alloc(Call& call) {
  join(call, call.arg(0), "waits for other ranks in cb_sym_alloc");
}

void Bootstrap::exchange_fds(Call& call) {
  Entry& entry = entries_[static_cast<size_t>(call.process.rank)];
  join(call, 0, "waits for other ranks in cb_exchange_fds", [&] {
    if (call.arg(0) == 0) return;
    UniqueFd fd = call.fd < 0 ? UniqueFd() : call.cluster.virtual_memory.another(call.fd);
    entry.is_invalid = !fd;
    entry.fd = std::make_shared<UniqueFd>(std::move(fd));
  });
}

int Bootstrap::pass_on(const Cluster& cluster, std::vector<Answer>& answers) const {
  for (const Entry& entry : entries_) {
    if (entry.is_invalid) return kCbInvalid;
  }
  for (size_t to = 0; to < answers.size(); ++to) {
    answers[to].payload.resize(entries_.size());
    for (size_t from = 0; from < entries_.size(); ++from) {
      bool is_near = cluster.node_of_rank(static_cast<int>(from)) ==
                     cluster.node_of_rank(static_cast<int>(to));
      if (entries_[from].fd == nullptr || !is_near) continue;
      answers[to].payload[from] = std::byte{1};
      answers[to].fds.push_back(entries_[from].fd);
    }
  }
  return kCbOk;
}

int Bootstrap::gather(std::vector<Answer>& answers) const {
  std::vector<std::byte> all;
  for (const Entry& entry : entries_) {
    all.insert(all.end(), entry.payload.begin(), entry.payload.end());
  }
  for (Answer& answer : answers) answer.payload = all;
  return kCbOk;
}

int Bootstrap::allocate(Cluster& cluster, std::vector<Answer>& answers) {
  uint64_t bytes = entries_.front().bytes;
  uint64_t limit = cluster.options.symmetric_bytes_max;
  if (bytes == 0) return kCbInvalid;
  if (bytes > limit || symmetric_bytes_ + bytes > limit) return kCbMemory;
  std::vector<const Allocation*> made;
  for (size_t rank = 0; rank < entries_.size(); ++rank) {
    const Allocation* one =
        cluster.memory.allocate({.rank = static_cast<int>(rank),
                                 .device = cluster.device_of_rank(static_cast<int>(rank)),
                                 .bytes = bytes,
                                 .kind = Allocation::Kind::kSymmetric,
                                 .label = "symmetric memory " + std::to_string(symmetric_.size()),
                                 .zeroed = true});
    if (one == nullptr) {
      for (const Allocation* before : made) {
        cluster.memory.free(before->rank, before->base, Allocation::Kind::kSymmetric);
      }
      return kCbMemory;
    }
    made.push_back(one);
  }
  symmetric_bytes_ += bytes;
  std::vector<uint64_t> bases;
  for (const Allocation* one : made) {
    cluster.memory.grant_everyone(one->base);
    bases.push_back(one->base);
  }
  symmetric_.push_back(bases);
  bool is_one_node =
      cluster.node_of_rank(0) == cluster.node_of_rank(static_cast<int>(entries_.size()) - 1);
  uint64_t multicast = 0;
  if (is_one_node && cluster.profile.device.multicast_supported != 0) {
    const Allocation* all = cluster.memory.allocate_multicast(made);
    if (all == nullptr) return kCbMemory;
    multicast = all->base;
    cluster.memory.grant_everyone(multicast);
    multicast_.push_back(multicast);
  }
  for (size_t rank = 0; rank < answers.size(); ++rank) {
    std::vector<uint64_t> reachable = bases;
    for (size_t peer = 0; peer < reachable.size(); ++peer) {
      bool is_near = cluster.node_of_rank(static_cast<int>(peer)) ==
                     cluster.node_of_rank(static_cast<int>(rank));
      if (!is_near) reachable[peer] = 0;
    }
    auto view = std::as_bytes(std::span(reachable));
    answers[rank].payload.assign(view.begin(), view.end());
    answers[rank].results[0] = multicast;
  }
  return kCbOk;
}

void Bootstrap::complete(Cluster& cluster) {
  const Entry& first = entries_.front();
  bool is_same = std::all_of(entries_.begin(), entries_.end(), [&first](const Entry& entry) {
    return entry.op == first.op && entry.bytes == first.bytes;
  });
  std::vector<Answer> answers(entries_.size());
  int status = kCbOk;
  if (!is_same) {
    status = kCbInvalid;
  } else if (first.op == Op::kAllgather) {
    status = gather(answers);
  } else if (first.op == Op::kSymAlloc) {
    status = allocate(cluster, answers);
  } else if (first.op == Op::kExchangeFds) {
    status = pass_on(cluster, answers);
  }
  release_all(cluster, status, answers);
}

void Bootstrap::release_all(Cluster& cluster, int status, const std::vector<Answer>& answers) {
  Time last = 0;
  for (const Entry& entry : entries_) {
    if (entry.thread != nullptr) last = std::max(last, entry.thread->clock);
  }
  Time wake = std::max(last, cluster.engine.now()) + cluster.costs.bootstrap;
  for (size_t rank = 0; rank < entries_.size(); ++rank) {
    HostThread* thread = entries_[rank].thread;
    entries_[rank] = {};
    if (thread == nullptr || thread->state != ThreadState::kBlocked) continue;
    Answer answer;
    if (status == kCbOk) answer = answers[rank];
    answer.status = status;
    thread->call.wake = wake;
    thread->call.complete = [answer](Answer& out) { out = answer; };
  }
  num_waiting_ = 0;
}

void Bootstrap::rank_ended(Cluster& cluster) {
  broken_ = true;
  release_all(cluster, kCbPeerFailed, {});
}

void Bootstrap::release(Cluster& cluster, int rank) {
  for (const auto& bases : symmetric_) {
    cluster.memory.free(rank, bases[static_cast<size_t>(rank)], Allocation::Kind::kSymmetric);
  }
  if (rank != 0) return;
  for (uint64_t base : multicast_) {
    cluster.memory.free(rank, base, Allocation::Kind::kMulticast);
  }
  multicast_.clear();
}

void Bootstrap::reset() {
  for (Entry& entry : entries_) entry = {};
  num_waiting_ = 0;
  broken_ = false;
  symmetric_bytes_ = 0;
  symmetric_.clear();
}

}  // namespace cb::sim
