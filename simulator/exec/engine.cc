#include "simulator/exec/engine.h"

#include "base/check.h"
#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

void prefetch(const Event& event) {
  if (event.kind != Event::Kind::kWarp) return;
  const auto* warp = reinterpret_cast<const std::byte*>(event.warp);
  for (size_t at = 0; at < sizeof(Warp); at += 64) __builtin_prefetch(warp + at);
}

Time to_ps(double ns) { return static_cast<Time>(ns * 1000 + 0.5); }

}  // namespace

EngineState::EngineState(AddressSpace& memory_, const Profile& profile_,
                         const EngineOptions& options_)
    : memory(memory_), profile(profile_), options(options_), resources(profile_) {
  cycle_ps = to_ps(1 / profile.sm_clock_ghz);
  slack = options.timed ? kSlack : kFunctionalSlack;
  hop_ps = to_ps(profile.nvlink_hop_ns);
  near_ps = to_ps(profile.l2_hit_ns / 2);
  devices.resize(static_cast<size_t>(profile.num_devices()));
  for (DeviceState& device : devices) device.sms.resize(profile.device.num_sms);
  ranks.resize(kMaxRanks);
}

void EngineState::queue_warp(Warp& warp, Time time) {
  if (warp.queued_at <= time) return;
  warp.queued_at = time;
  warp.queue_ticket = next_ticket++;
  queue.push({.time = time, .warp = &warp, .ticket = warp.queue_ticket});
}

void EngineState::run_soon(Warp& warp, Time time) {
  if (is_too_far(time)) {
    queue_warp(warp, std::max(time, now));
    return;
  }
  if (warp.queued_at <= now) return;
  warp.queued_at = now;
  warp.queue_ticket = next_ticket++;
  hot.emplace_back(&warp, warp.queue_ticket);
}

void EngineState::run_hot_warps() {
  while (!hot.empty()) {
    auto [warp, ticket] = hot.front();
    hot.pop_front();
    if (warp->queue_ticket != ticket) continue;
    warp->queued_at = kNever;
    warp->queue_ticket = 0;
    run_warp(*warp);
  }
}

void EngineState::queue_callback(Time time, std::function<void()> callback) {
  uint64_t index = callbacks.size();
  if (free_callbacks.empty()) {
    callbacks.push_back(std::move(callback));
  } else {
    index = free_callbacks.back();
    free_callbacks.pop_back();
    callbacks[index] = std::move(callback);
  }
  queue.push({.time = time, .ticket = index, .kind = Event::Kind::kCallback});
}

void EngineState::execute(const Event& event) {
  switch (event.kind) {
    case Event::Kind::kWarp:
      if (event.warp->queue_ticket != event.ticket) return;
      event.warp->queued_at = kNever;
      event.warp->queue_ticket = 0;
      run_warp(*event.warp);
      run_hot_warps();
      break;
    case Event::Kind::kCallback: {
      std::function<void()> callback = std::move(callbacks[event.ticket]);
      callbacks[event.ticket] = nullptr;
      free_callbacks.push_back(event.ticket);
      callback();
      break;
    }
    case Event::Kind::kStore:
      apply_store(event.ticket);
      break;
    case Event::Kind::kCopyRead:
      read_copy(event.ticket);
      break;
    case Event::Kind::kCopyDone:
      finish_copy(event.ticket);
      break;
  }
  ended_runs.clear();
}

Engine::Engine(AddressSpace& memory, const Profile& profile, const EngineOptions& options)
    : state_(std::make_unique<EngineState>(memory, profile, options)) {}

Engine::~Engine() = default;

uint64_t Engine::start(KernelLaunch launch, EndCallback on_end) {
  EngineState& state = *state_;
  CB_CHECK(launch.device >= 0 && launch.device < state.profile.num_devices(), "no such device");
  CB_CHECK(launch.rank >= 0 && launch.rank < static_cast<int>(kMaxRanks), "no such rank");
  auto run = std::make_unique<KernelRun>();
  run->id = state.next_run++;
  run->launch = std::move(launch);
  run->on_end = std::move(on_end);
  uint64_t id = run->id;
  Time start = std::max(run->launch.start, state.now);
  state.runs.emplace(id, std::move(run));
  state.queue_callback(start, [&state, id] {
    auto found = state.runs.find(id);
    if (found != state.runs.end()) state.start_run(*found->second);
  });
  return id;
}

void Engine::at(Time time, std::function<void()> callback) {
  state_->queue_callback(std::max(time, state_->now), std::move(callback));
}

Time Engine::now() const { return state_->now; }

Time Engine::next_event() const {
  // Entries of warps that were queued anew are not events.
  EventQueue& queue = state_->queue;
  while (!queue.empty()) {
    const Event& top = queue.top();
    if (top.kind != Event::Kind::kWarp || top.warp->queue_ticket == top.ticket) break;
    queue.pop();
  }
  return queue.next_time();
}

void Engine::run(Time limit, const std::function<bool()>& poll) {
  constexpr uint32_t kEventsPerPoll = 2048;
  EngineState& state = *state_;
  state.limit = limit;
  state.interrupted = false;
  uint32_t events = 0;
  while (!state.interrupted) {
    if (state.queue.next_time() > limit || state.queue.empty()) break;
    Event event = state.queue.top();
    state.queue.pop();
    if (event.kind == Event::Kind::kWarp && event.warp->queue_ticket != event.ticket) continue;
    // Warps are many and visited in no order that a cache knows.
    if (!state.queue.empty()) prefetch(state.queue.top());
    state.now = std::max(state.now, event.time);
    state.execute(event);
    if (++events % kEventsPerPoll == 0 && poll && poll()) break;
  }
}

void Engine::interrupt() { state_->interrupted = true; }

void Engine::written(uint64_t address, uint64_t bytes) {
  if (state_->filter.num_watches != 0) {
    state_->written(address, address + bytes, state_->now);
  }
}

uint64_t Engine::watch(uint64_t address, uint32_t bytes, std::function<void()> on_write) {
  return state_->add_outer_watch(address, bytes, std::move(on_write));
}

void Engine::unwatch(uint64_t number) { state_->remove_outer_watch(number); }

void Engine::host_may_have_written() {
  if (state_->num_pinned != 0) state_->host_may_have_written();
}

void Engine::stop_rank(int rank) {
  std::vector<KernelRun*> ours;
  for (auto& [id, run] : state_->runs) {
    if (run->launch.rank == rank) ours.push_back(run.get());
  }
  for (KernelRun* run : ours) {
    run->on_end = nullptr;
    run->launch.on_launch_dependents = nullptr;
    run->failed = true;
    state_->abandon(*run);
  }
  state_->ended_runs.clear();
}

void Engine::set_pace(int rank, uint32_t pace) {
  CB_CHECK(pace >= 1, "a pace of 0 would stop time");
  state_->ranks[static_cast<size_t>(rank)].pace = pace;
}

std::vector<Waiter> Engine::waiters(size_t limit) const { return state_->waiters(limit); }

const std::vector<Finding>& Engine::findings() const { return state_->findings; }

std::string Engine::take_output(int rank) {
  return std::exchange(state_->ranks[static_cast<size_t>(rank)].output, {});
}

size_t Engine::output_bytes(int rank) const {
  return state_->ranks[static_cast<size_t>(rank)].output.size();
}

const EngineStats& Engine::stats(int rank) const {
  return state_->ranks[static_cast<size_t>(rank)].stats;
}

Resources& Engine::resources() { return state_->resources; }

}  // namespace cb::sim
