#include "simulator/daemon/server.h"

#include <algorithm>

#include "base/socket.h"
#include "simulator/daemon/call.h"
#include "simulator/daemon/host_functions.h"

namespace cb::sim {
namespace {

using Clock = std::chrono::steady_clock;

/// How many actions happen at most before the sockets are looked at.
constexpr int kActionsPerLook = 64;
constexpr auto kMemoryCheckInterval = std::chrono::milliseconds(5);
/// Looking again at once is faster than sleeping when a host answers soon.
constexpr auto kSpin = std::chrono::microseconds(30);

}  // namespace

Server::Server(const DaemonOptions& options, const Profile& profile)
    : cluster_(std::make_unique<Cluster>(options, profile)), gate_(*cluster_) {
  wall_end_ = options.wall_limit_ms > 0
                  ? Clock::now() + std::chrono::milliseconds(options.wall_limit_ms)
                  : Clock::time_point::max();
}

Server::Server(const DaemonOptions& options, const Profile& profile, UniqueFd listener)
    : Server(options, profile) {
  job_ = std::make_unique<Job>(*cluster_);
  cluster_->job = job_.get();
  listener_ = std::move(listener);
  ranks_ = std::make_unique<RankRequests>(*cluster_, *job_, gate_);
}

Server::~Server() = default;

void Server::run() {
  while (!is_abandoned()) step(-1);
}

Gate::Progress Server::step(int timeout_ms) {
  check_memory();
  auto poll_sockets = [this] { return has_urgent_input(); };
  Gate::Progress progress = Gate::Progress::kMade;
  for (int action = 0; action < kActionsPerLook && progress == Gate::Progress::kMade; ++action) {
    read_hosts();
    progress = gate_.advance(poll_sockets);
    if (Clock::now() >= next_memory_check_) break;
  }
  if (progress == Gate::Progress::kDeadlock && job_ != nullptr) job_->deadlock(gate_.now());
  bool waits = progress == Gate::Progress::kWaitsForHost || progress == Gate::Progress::kIdle;
  if (waits) {
    auto end = Clock::now() + kSpin;
    bool found = false;
    while (!found && Clock::now() < end) found = read_hosts();
    wait_for_messages(found ? 0 : timeout_ms);
  } else {
    wait_for_messages(0);
  }
  return progress;
}

bool Server::read_hosts() {
  bool found = false;
  for (auto& process : cluster_->processes) {
    if (process == nullptr || !process->is_alive()) continue;
    for (size_t at = 0; at < process->threads.size() && process->is_alive(); ++at) {
      HostThread& thread = *process->threads[at];
      if (thread.state == ThreadState::kRunning) found = take_message(thread) || found;
    }
  }
  return found;
}

bool Server::is_held(const HostThread& thread) {
  constexpr uint64_t kLongestUs = 500;
  auto held = held_until_.find(&thread);
  if (held == held_until_.end()) {
    uint64_t wait_us =
        delays_->below(num_delays_, 2) == 0 ? 0 : delays_->below(num_delays_ + 1, kLongestUs);
    num_delays_ += 2;
    held = held_until_.emplace(&thread, Clock::now() + std::chrono::microseconds(wait_us)).first;
  }
  if (Clock::now() < held->second) return true;
  held_until_.erase(held);
  return false;
}

bool Server::take_message(HostThread& thread) {
  if (delays_ && (!thread.connection.has_input() || is_held(thread))) return false;
  HostProcess& process = *thread.process;
  switch (thread.connection.receive(thread.pending)) {
    case Received::kNothing:
      return false;
    case Received::kMessage:
      thread.state = ThreadState::kPending;
      return true;
    case Received::kMalformed:
      process.fault = "a message of impossible size";
      break;
    case Received::kClosed:
      break;
  }
  cluster_->end_process(process, HostProcess::State::kGone);
  return true;
}

void Server::read_blocked(HostThread& thread) {
  Message message;
  Received received = thread.connection.receive(message);
  if (received == Received::kNothing) return;
  if (received != Received::kClosed) {
    thread.process->fault = "a request before the reply to the last one";
  }
  cluster_->end_process(*thread.process, HostProcess::State::kGone);
}

void Server::collect_fds() {
  polled_.clear();
  polled_threads_.clear();
  if (listener_) polled_.push_back({listener_.get(), POLLIN, 0});
  if (ranks_ != nullptr) {
    for (int fd : ranks_->fds()) polled_.push_back({fd, POLLIN, 0});
  }
  for (int fd : also_watch) polled_.push_back({fd, POLLIN, 0});
  for (auto& process : cluster_->processes) {
    if (process == nullptr || !process->is_alive()) continue;
    for (auto& thread : process->threads) {
      bool is_read = thread->state == ThreadState::kRunning ||
                     (thread->state == ThreadState::kBlocked && thread->call.owes_reply);
      // It dies with its process, the end of which other threads announce.
      if (!is_read || is_idle_function_thread(*thread)) continue;
      polled_.push_back({thread->connection.fd(), POLLIN, 0});
      polled_threads_.push_back(thread.get());
    }
  }
}

void Server::check_memory() {
  if (Clock::now() < next_memory_check_) return;
  next_memory_check_ = Clock::now() + kMemoryCheckInterval;
  if (cluster_->memory.over_quota()) cluster_->out_of_memory(-1);
}

bool Server::has_urgent_input() {
  if (Clock::now() >= next_memory_check_) return true;
  collect_fds();
  // What threads in host code send can wait; an end, or a trusted rank, cannot.
  size_t first_thread = polled_.size() - polled_threads_.size();
  for (size_t at = 0; at < polled_threads_.size(); ++at) {
    if (polled_threads_[at]->state == ThreadState::kRunning) polled_[first_thread + at].events = 0;
  }
  return poll(polled_.data(), polled_.size(), 0) > 0 || Clock::now() >= wall_end_;
}

void Server::wait_for_messages(int timeout_ms) {
  if (wall_end_ != Clock::time_point::max()) {
    auto left = std::chrono::duration_cast<std::chrono::milliseconds>(wall_end_ - Clock::now());
    int left_ms = static_cast<int>(std::clamp<int64_t>(left.count() + 1, 0, 1'000'000));
    if (left.count() < 0) {
      wall_end_ = Clock::time_point::max();
      if (job_ != nullptr) job_->wall_limit(gate_.now());
    } else if (timeout_ms < 0 || timeout_ms > left_ms) {
      timeout_ms = left_ms;
    }
  }
  collect_fds();
  if (poll(polled_.data(), polled_.size(), timeout_ms) <= 0) return;
  std::vector<HostThread*> threads = polled_threads_;
  size_t first_thread = polled_.size() - threads.size();
  std::vector<pollfd> polled = polled_;
  for (size_t at = 0; at < threads.size(); ++at) {
    if (polled[first_thread + at].revents == 0) continue;
    if (threads[at]->state == ThreadState::kBlocked) read_blocked(*threads[at]);
  }
  if (listener_ && polled.front().revents != 0) accept_ranks();
  if (ranks_ != nullptr) ranks_->serve();
}

void Server::accept_ranks() { ranks_->add(seqpacket_accept(listener_.get())); }

}  // namespace cb::sim
