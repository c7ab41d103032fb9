#include "simulator/daemon/ipc.h"

#include <fmt/format.h>

#include <cstring>

#include "base/hash.h"
#include "simulator/daemon/call.h"

namespace cb::sim {
namespace {

constexpr uint32_t kInterprocessFlag = 4;  ///< cudaEventInterprocess

IpcTokens::Token token_of(const Call& call) { return {call.arg(0), call.arg(1)}; }

void answer_token(Call& call, const IpcTokens::Token& token) {
  Answer answer;
  answer.results[0] = token[0];
  answer.results[1] = token[1];
  call.done(call.cluster.costs.call, answer);
}

}  // namespace

IpcTokens::Token IpcTokens::make() {
  Sha256Digest digest = hmac_sha256(fmt::format("cuda ipc {}", seed_), std::to_string(++counter_));
  Token token;
  std::memcpy(token.data(), digest.data(), sizeof token);
  return token;
}

IpcTokens::Token IpcTokens::of_memory(int rank, uint64_t base) {
  auto found = by_base_.find(base);
  if (found != by_base_.end()) return found->second;
  Token token = make();
  by_base_.emplace(base, token);
  memories_.emplace(token, Memory{rank, base});
  return token;
}

IpcTokens::Token IpcTokens::of_event(const std::shared_ptr<Event>& event) {
  for (const auto& [token, known] : events_) {
    if (known == event) return token;
  }
  Token token = make();
  events_.emplace(token, event);
  return token;
}

const IpcTokens::Memory* IpcTokens::memory(const Token& token) const {
  auto found = memories_.find(token);
  return found == memories_.end() ? nullptr : &found->second;
}

std::shared_ptr<Event> IpcTokens::event(const Token& token) const {
  auto found = events_.find(token);
  return found == events_.end() ? nullptr : found->second;
}

void IpcTokens::reset() {
  memories_.clear();
  by_base_.clear();
  events_.clear();
}

void ipc_get_memory(Call& call) {
  const Allocation* found = call.cluster.memory.find(call.arg(0));
  // The grader's buffers and symmetric memory are VMM memory, which cudaIpc does not know.
  bool is_own = found != nullptr && found->alive && found->rank == call.process.rank &&
                found->kind == Allocation::Kind::kDevice;
  if (!is_own) return call.fail(kCudaInvalidValue);
  answer_token(call, call.cluster.ipc.of_memory(call.process.rank, found->base));
}

void ipc_open_memory(Call& call) {
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  Cluster& cluster = call.cluster;
  HostProcess& process = call.process;
  const IpcTokens::Memory* known = cluster.ipc.memory(token_of(call));
  if (known == nullptr) return call.fail(kCudaInvalidValue);
  if (known->rank == process.rank) return call.fail(kCudaDeviceUninitialized);
  const Allocation* allocation = cluster.memory.find(known->base);
  if (allocation == nullptr || !allocation->alive ||
      cluster.profile.node_of_device(allocation->device) != process.node) {
    return call.fail(kCudaInvalidValue);
  }
  OpenedMemory& opened = process.opened[known->base];
  opened.owner_rank = known->rank;
  ++opened.count;
  cluster.memory.grant(known->base, process.rank);
  Answer answer;
  answer.results[0] = known->base;
  call.done(cluster.costs.ipc_open, answer);
}

void ipc_close_memory(Call& call) {
  auto found = call.process.opened.find(call.arg(0));
  if (found == call.process.opened.end()) return call.fail(kCudaInvalidValue);
  if (--found->second.count == 0) {
    call.cluster.memory.revoke(call.arg(0), call.process.rank);
    call.process.opened.erase(found);
  }
  call.done(call.cluster.costs.ipc_open);
}

void ipc_get_event(Call& call) {
  std::shared_ptr<Event> event = call.event(call.arg(0));
  if (event == nullptr) return;
  if ((event->flags & kInterprocessFlag) == 0 || event->rank != call.process.rank) {
    return call.fail(kCudaInvalidResourceHandle);
  }
  answer_token(call, call.cluster.ipc.of_event(event));
}

void ipc_open_event(Call& call) {
  std::optional<int> device = call.device(call.arg(3));
  if (!device) return;
  std::shared_ptr<Event> event = call.cluster.ipc.event(token_of(call));
  if (event == nullptr || call.cluster.profile.node_of_device(event->device) != call.process.node) {
    return call.fail(kCudaInvalidValue);
  }
  if (event->rank == call.process.rank) return call.fail(kCudaInvalidResourceHandle);
  if (call.process.events.contains(call.arg(2))) return call.malformed("an event's id is in use");
  if (call.process.events.size() >= kProcessQuota.events) return call.fail(kCudaMemoryAllocation);
  call.process.events.emplace(call.arg(2), event);
  call.done(call.cluster.costs.ipc_open);
}

}  // namespace cb::sim
