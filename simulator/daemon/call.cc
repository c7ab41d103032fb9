#include "simulator/daemon/call.h"

#include "simulator/daemon/streams.h"

namespace cb::sim {

bool Call::is_one_way() const {
  switch (request.op) {
    case Op::kBye:
    case Op::kThreadWake:
    case Op::kModuleUnload:
    case Op::kStreamCreate:
    case Op::kStreamDestroy:
    case Op::kStreamWait:
    case Op::kEventCreate:
    case Op::kEventDestroy:
    case Op::kEventRecord:
    case Op::kLaunch:
    case Op::kHostFunction:
      return true;
    case Op::kMemcpy:
    case Op::kMemcpy2D:
    case Op::kMemset:
      return has_flag(kCopyOneWay);
    default:
      return false;
  }
}

std::optional<int> Call::device(uint64_t number) {
  if (number >= static_cast<uint64_t>(cluster.profile.devices_per_node)) {
    fail(kCudaInvalidDevice);
    return std::nullopt;
  }
  device_ = process.first_device + static_cast<int>(number);
  int error = process.contexts[device_].error;
  if (error != 0) {
    fail(error);
    return std::nullopt;
  }
  return device_;
}

std::shared_ptr<Stream> Call::stream(uint64_t id, int device) {
  if (id == kNullStream) return null_stream(process, device);
  if (id == kPerThreadStream) return thread_stream(thread, device);
  auto found = process.streams.find(id);
  if (found == process.streams.end() || found->second->device != device) {
    fail(kCudaInvalidResourceHandle);
    return nullptr;
  }
  return found->second;
}

std::shared_ptr<Event> Call::event(uint64_t id) {
  auto found = process.events.find(id);
  if (found == process.events.end()) {
    fail(kCudaInvalidResourceHandle);
    return nullptr;
  }
  return found->second;
}

void Call::done(Time cost, const Answer& answer, std::span<const int> fds) {
  thread.clock += cost;
  if (!is_one_way()) return finish_call(cluster, thread, answer, fds);
  thread.state = ThreadState::kRunning;
  if (answer.status != 0) {
    int device = device_ >= 0 ? device_ : cluster.device_of_rank(process.rank);
    cluster.break_context(process, device, answer.status);
  }
}

void Call::wait(BlockedCall blocked) {
  blocked.owes_reply = !is_one_way();
  thread.call = std::move(blocked);
  thread.state = ThreadState::kBlocked;
}

void Call::again(std::function<bool()> is_ready, const std::string& what) {
  BlockedCall blocked;
  blocked.is_ready = std::move(is_ready);
  blocked.what = what;
  blocked.again = true;
  wait(std::move(blocked));
}

void Call::malformed(const std::string& reason) { fault_ = reason; }

void finish_call(Cluster& cluster, HostThread& thread, const Answer& answer,
                 std::span<const int> fds) {
  thread.state = ThreadState::kRunning;
  Reply reply;
  reply.status = answer.status;
  reply.payload_bytes = static_cast<uint32_t>(answer.payload.size());
  reply.sequence = thread.pending.request.sequence;
  std::copy(std::begin(answer.results), std::end(answer.results), std::begin(reply.results));
  reply.results[5] =
      cluster.engine.output_bytes(thread.process->rank) + thread.process->output.size();
  // A host that does not take its reply is noticed when its connection is read.
  std::vector<int> all(fds.begin(), fds.end());
  for (const auto& fd : answer.fds) all.push_back(fd->get());
  thread.connection.send(reply, answer.payload, all);
}

}  // namespace cb::sim
