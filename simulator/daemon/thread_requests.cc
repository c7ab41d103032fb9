#include "simulator/daemon/thread_requests.h"

#include <algorithm>

#include "simulator/daemon/call.h"
#include "simulator/daemon/host_functions.h"

namespace cb::sim {
namespace {

constexpr Time kPsPerNs = 1000;
/// A sleep of this length is one without end. Far enough below 2^64 ps that sums do not wrap.
constexpr uint64_t kEndlessNs = 1'000'000'000'000'000;
constexpr Time kLatestTime = Time{1} << 63;
constexpr size_t kMaxThreadsEver = 65536;
constexpr size_t kOutputPieceBytes = 4096;

}  // namespace

void hello(Call& call) {
  if (call.thread.said_hello) return call.malformed("a second hello");
  if (call.arg(0) != kProtocolVersion) return call.malformed("another protocol version");
  call.thread.said_hello = true;
  Cluster& cluster = call.cluster;
  HelloReply reply;
  reply.version = kProtocolVersion;
  reply.rank = call.process.rank;
  reply.world_size = cluster.options.world_size;
  reply.node = call.process.node;
  reply.num_nodes = cluster.profile.num_nodes;
  reply.device = cluster.device_of_rank(call.process.rank) - call.process.first_device;
  reply.num_devices = static_cast<uint32_t>(cluster.profile.devices_per_node);
  reply.thread_id = call.thread.id;
  Answer answer;
  auto append = [&answer](const auto& value) {
    auto bytes = std::as_bytes(std::span(&value, 1));
    answer.payload.insert(answer.payload.end(), bytes.begin(), bytes.end());
  };
  append(reply);
  for (int device = 0; device < cluster.profile.devices_per_node; ++device) {
    append(cluster.device_info(call.process.first_device + device));
  }
  call.done(cluster.costs.call, answer);
}

void bye(Call& call) {
  call.thread.state = ThreadState::kEnded;
  call.thread.connection.close();
  auto& threads = call.process.threads;
  bool is_last = std::all_of(threads.begin(), threads.end(), [](const auto& thread) {
    return thread->state == ThreadState::kEnded || is_idle_function_thread(*thread);
  });
  if (call.arg(0) == 1 || is_last) {
    call.cluster.end_process(call.process, HostProcess::State::kSaidGoodbye);
  }
}

void thread_new(Call& call) {
  auto& threads = call.process.threads;
  auto num_alive =
      static_cast<size_t>(std::count_if(threads.begin(), threads.end(), [](const auto& thread) {
        return thread->state != ThreadState::kEnded;
      }));
  if (num_alive >= kProcessQuota.threads || threads.size() >= kMaxThreadsEver) {
    return call.fail(kCudaMemoryAllocation);
  }
  HostThread& made = call.process.new_thread(call.thread.clock + call.cluster.costs.call);
  Answer answer;
  answer.results[0] = made.id;
  int fds[] = {made.connection.host_fd(), made.connection.staging_fd()};
  call.done(call.cluster.costs.call, answer, fds);
  made.connection.drop_host_end();
}

void thread_join(Call& call) {
  HostThread* other = call.process.thread(call.arg(0));
  if (other == nullptr || other == &call.thread) return call.fail(kCudaInvalidValue);
  BlockedCall blocked;
  blocked.is_ready = [other] { return other->state == ThreadState::kEnded; };
  blocked.after_ready = call.cluster.costs.call;
  blocked.what = "joins thread " + std::to_string(other->id);
  call.wait(std::move(blocked));
}

void thread_wake(Call& call) {
  HostThread* other = call.process.thread(call.arg(0));
  Time cost = call.cluster.costs.call;
  if (other != nullptr && other->state != ThreadState::kEnded) {
    BlockedCall& waiting = other->call;
    if (other->state == ThreadState::kBlocked && waiting.can_be_woken) {
      waiting.can_be_woken = false;
      waiting.wake = std::max(other->clock, call.thread.clock) + cost;
      waiting.complete = [](Answer& answer) { answer.results[0] = 1; };
    } else {
      other->has_wake = true;
    }
  }
  call.done(cost);
}

void time_now(Call& call) {
  Answer answer;
  Time cost = call.cluster.costs.clock_read;
  answer.results[0] = (call.thread.clock + cost) / kPsPerNs;
  call.done(cost, answer);
}

void sleep_request(Call& call) {
  HostThread& thread = call.thread;
  bool can_be_woken = call.arg(1) != 0;
  if (can_be_woken && thread.has_wake) {
    thread.has_wake = false;
    Answer answer;
    answer.results[0] = 1;
    return call.done(call.cluster.costs.call, answer);
  }
  BlockedCall blocked;
  uint64_t ns = std::clamp<uint64_t>(call.arg(0), 1, kEndlessNs);
  blocked.wake = std::min(thread.clock + ns * kPsPerNs, kLatestTime);
  if (can_be_woken && ns == kEndlessNs) blocked.wake = kNever;
  blocked.can_be_woken = can_be_woken;
  blocked.what = "sleeps";
  blocked.complete = [](Answer& answer) { answer.results[0] = 0; };
  call.wait(std::move(blocked));
}

void relax(Call& call) {
  const Costs& costs = call.cluster.costs;
  BlockedCall blocked;
  unsigned doublings = std::min(call.thread.idle_polls++ / 64, 20u);
  blocked.wake = call.thread.clock + std::min(costs.relax << doublings, costs.longest_relax);
  blocked.what = "polls";
  call.wait(std::move(blocked));
}

void kernel_output(Call& call) {
  std::string& output = call.process.output;
  output += call.cluster.engine.take_output(call.process.rank);
  size_t piece = std::min(output.size(), kOutputPieceBytes);
  Answer answer;
  auto bytes = std::as_bytes(std::span(output)).first(piece);
  answer.payload.assign(bytes.begin(), bytes.end());
  output.erase(0, piece);
  answer.results[0] = output.size();
  call.done(call.cluster.costs.call, answer);
}

}  // namespace cb::sim
