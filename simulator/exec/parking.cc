// Wait loops. A loop without side effects that read the same values twice in a row will read them
// again until somebody writes; its group is parked, and wakes when one of the addresses is written.
// If it carries something from one iteration to the next (a counter, a back-off) or reads a clock,
// it wakes after a while in any case: fewer iterations are always a legal execution.

#include <algorithm>
#include <cstring>

#include "simulator/exec/engine_state.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

constexpr uint32_t kSpinsBeforeRecording = 4;
constexpr Time kFirstDeadline = 1'000'000;
constexpr Time kLastDeadline = 1'000'000'000;
constexpr uint64_t kLineBytes = 64;
/// Writes up to this size ask the filter first.
constexpr uint64_t kFilteredBytes = 4096;

uint64_t first_line(uint64_t address) { return address / kLineBytes; }
uint64_t last_line(uint64_t end) { return (end - 1) / kLineBytes; }

void append_lanes(const Context& c, const SpinLoop::Carried& carried, std::vector<uint64_t>& out) {
  const Meta& meta = c.meta[carried.slot.index];
  out.push_back(meta.is_vector);
  if (!meta.is_vector) {
    out.push_back(meta.base);
    out.push_back(static_cast<uint64_t>(meta.stride));
    return;
  }
  const std::byte* lanes = c.vectors + size_t{carried.slot.vector} * kLineBytes;
  for (uint32_t left = c.group_mask; left != 0; left &= left - 1) {
    auto lane = static_cast<size_t>(std::countr_zero(left));
    uint64_t value[2] = {0, 0};
    std::memcpy(value, lanes + lane * carried.bytes, std::min<size_t>(carried.bytes, 16));
    out.push_back(value[0]);
    if (carried.bytes > 8) out.push_back(value[1]);
  }
}

/// What the loop carries, as the group's lanes see it.
std::vector<uint64_t> carried_values(const Context& c, const SpinLoop& loop) {
  std::vector<uint64_t> values;
  for (const SpinLoop::Carried& carried : loop.carried) append_lanes(c, carried, values);
  for (uint16_t predicate : loop.carried_predicates) {
    values.push_back(c.predicates[predicate] & c.group_mask);
  }
  return values;
}

}  // namespace

void SpinRecorder::read(uint64_t address, uint32_t bytes) {
  if (reads_.size() >= kMaxReads || bytes > 16) {
    spoiled_ = true;
    return;
  }
  reads_.push_back({address, bytes});
  std::memcpy(values_.emplace_back().data(), reinterpret_cast<const void*>(address), bytes);
}

bool SpinRecorder::unchanged() const {
  for (size_t i = 0; i < reads_.size(); ++i) {
    if (std::memcmp(reinterpret_cast<const void*>(reads_[i].address), values_[i].data(),
                    reads_[i].bytes) != 0) {
      return false;
    }
  }
  return true;
}

void SpinRecorder::clear() {
  reads_.clear();
  values_.clear();
  spoiled_ = false;
  uses_clock_ = false;
}

const MicroOp* EngineState::take_back_edge(Context& c, const MicroOp* op, const MicroOp* target) {
  Group& group = *c.group;
  auto target_pc = static_cast<uint32_t>(target - c.code->ops.data());
  if (++group.back_edges % 64 == 0) {
    ++group.rounds;
    if (c.warp->groups.size() > 1) {
      group.pc = target_pc;
      c.stop = Stop::kSwitch;
      return nullptr;
    }
  }
  if (op->immediate == 0) return target;
  auto pc = static_cast<uint32_t>(op - c.code->ops.data());
  if (group.spin_pc != pc) {
    group.spin_pc = pc;
    group.spin_count = 0;
    group.deadline_step = 0;
    group.recorder.reset();
    c.recorder = nullptr;
    return target;
  }
  if (++group.spin_count < kSpinsBeforeRecording) return target;
  const SpinLoop& loop = c.code->spin_loops[op->immediate - 1];
  if (group.recorder == nullptr) {
    group.recorder = std::make_unique<SpinRecorder>();
    group.carried = carried_values(c, loop);
    c.recorder = group.recorder.get();
    return target;
  }
  SpinRecorder& recorder = *group.recorder;
  if (recorder.spoiled() || recorder.reads().empty()) {
    group.recorder.reset();
    c.recorder = nullptr;
    group.spin_count = 0;
    return target;
  }
  std::vector<uint64_t> carried = carried_values(c, loop);
  bool same = carried == group.carried;
  if (!recorder.unchanged()) {
    recorder.clear();
    group.carried = std::move(carried);
    return target;
  }
  group.pc = target_pc;
  park(c, !same || recorder.uses_clock());
  return nullptr;
}

void EngineState::park(Context& c, bool has_deadline) {
  Group& group = *c.group;
  group.state = GroupState::kParked;
  group.park_id = next_park++;
  group.watches = group.recorder->reads();
  // Whoever writes may know the memory by another address.
  if (memory.has_mappings()) {
    for (Watch& watch : group.watches) watch.address = memory.home_of(watch.address);
  }
  group.now = c.now;
  group.deadline = 0;
  group.watches_pinned = false;
  ++ranks[static_cast<size_t>(c.run->launch.rank)].stats.parked;
  if (has_deadline) {
    group.deadline_step = std::clamp(group.deadline_step * 2, kFirstDeadline, kLastDeadline);
    group.deadline = c.now + group.deadline_step;
    ++num_deadlines;
  }
  for (const Watch& watch : group.watches) {
    const Allocation* allocation = memory.find(watch.address);
    if (allocation != nullptr && allocation->kind == Allocation::Kind::kPinned) {
      group.watches_pinned = true;
    }
    for (uint64_t line = first_line(watch.address); line <= last_line(watch.address + watch.bytes);
         ++line) {
      watches[line].push_back({c.warp, &group, group.park_id});
      ++filter.num_watches;
      filter.bits[line % WatchFilter::kBits / 64] |= uint64_t{1} << (line % 64);
    }
  }
  if (group.watches_pinned) ++num_pinned;
  c.recorder = nullptr;
  c.stop = Stop::kBlocked;
  if (options.observer != nullptr) {
    options.observer->wait_started(group.park_id, describe_waiter(*c.warp, group), c.now);
  }
}

void EngineState::forget_watches(Group& group) {
  if (group.watches_pinned) --num_pinned;
  if (group.deadline != 0) --num_deadlines;
  group.deadline = 0;
  for (const Watch& watch : group.watches) {
    for (uint64_t line = first_line(watch.address); line <= last_line(watch.address + watch.bytes);
         ++line) {
      auto found = watches.find(line);
      if (found == watches.end()) continue;
      filter.num_watches -= static_cast<uint32_t>(std::erase_if(
          found->second, [&](const LineWatch& entry) { return entry.park_id == group.park_id; }));
      if (found->second.empty()) watches.erase(found);
    }
  }
  group.watches.clear();
  group.recorder.reset();
  if (filter.num_watches == 0) std::memset(filter.bits, 0, sizeof filter.bits);
}

void EngineState::unpark(Warp& warp, Group& group, Time time) {
  forget_watches(group);
  group.state = GroupState::kReady;
  group.now = std::max(group.now, time);
  if (options.observer != nullptr) options.observer->wait_ended(group.park_id, group.now);
  queue_warp(warp, std::max(group.now, now));
}

void EngineState::wake_expired(Warp& warp) {
  for (const auto& group : warp.groups) {
    if (group->state == GroupState::kParked && group->deadline != 0 && group->deadline <= now) {
      unpark(warp, *group, group->deadline);
    }
  }
}

void EngineState::queue_deadlines(Warp& warp) {
  Time earliest = kNever;
  for (const auto& group : warp.groups) {
    if (group->state == GroupState::kParked && group->deadline != 0) {
      earliest = std::min(earliest, group->deadline);
    }
  }
  if (earliest != kNever) queue_warp(warp, std::max(earliest, now));
}

void EngineState::written(uint64_t lo, uint64_t hi, Time time) {
  if (!memory.has_mappings()) return written_at_home(lo, hi, time);
  while (lo < hi) {
    const Allocation* found = memory.find(lo);
    bool is_mapped = found != nullptr && found->kind == Allocation::Kind::kMapped;
    uint64_t end = is_mapped ? std::min(hi, found->end()) : hi;
    uint64_t home = is_mapped ? found->home + (lo - found->base) : lo;
    written_at_home(home, home + (end - lo), time);
    lo = end;
  }
}

void EngineState::written_at_home(uint64_t lo, uint64_t hi, Time time) {
  if (lo >= hi) return;
  if (hi - lo <= kFilteredBytes) {
    bool maybe = false;
    for (uint64_t line = first_line(lo); line <= last_line(hi); ++line) {
      maybe |= (filter.bits[line % WatchFilter::kBits / 64] >> (line % 64) & 1) != 0;
    }
    if (!maybe) return;
  }
  if (!outer_watches.empty()) call_outer_watches(lo, hi, time);
  std::vector<LineWatch> found;
  auto end = watches.upper_bound(last_line(hi));
  for (auto place = watches.lower_bound(first_line(lo)); place != end; ++place) {
    for (const LineWatch& entry : place->second) {
      for (const Watch& watch : entry.group->watches) {
        if (watch.address < hi && watch.address + watch.bytes > lo) {
          found.push_back(entry);
          break;
        }
      }
    }
  }
  for (const LineWatch& entry : found) {
    // A group may watch several of the lines.
    if (entry.group->state != GroupState::kParked || entry.group->park_id != entry.park_id) {
      continue;
    }
    // A poll was on its way when the write happened, and the next one sees it.
    unpark(*entry.warp, *entry.group, time);
  }
}

uint64_t EngineState::add_outer_watch(uint64_t address, uint32_t bytes,
                                      std::function<void()> on_write) {
  uint64_t number = next_park++;
  const Allocation* allocation = memory.find(address);
  OuterWatch watch;
  watch.address = memory.has_mappings() ? memory.home_of(address) : address;
  watch.bytes = bytes;
  watch.is_pinned = allocation != nullptr && allocation->kind == Allocation::Kind::kPinned;
  watch.on_write = std::move(on_write);
  for (uint64_t line = first_line(watch.address); line <= last_line(watch.address + bytes);
       ++line) {
    filter.bits[line % WatchFilter::kBits / 64] |= uint64_t{1} << (line % 64);
  }
  ++filter.num_watches;
  if (watch.is_pinned) ++num_pinned;
  outer_watches.emplace(number, std::move(watch));
  return number;
}

void EngineState::remove_outer_watch(uint64_t number) {
  auto found = outer_watches.find(number);
  if (found == outer_watches.end()) return;
  if (found->second.is_pinned) --num_pinned;
  outer_watches.erase(found);
  if (--filter.num_watches == 0) std::memset(filter.bits, 0, sizeof filter.bits);
}

/// Their owners look at the memory when the write has arrived, and when other events at that time
/// cannot be disturbed.
void EngineState::call_outer_watches(uint64_t lo, uint64_t hi, Time time) {
  for (const auto& [number, watch] : outer_watches) {
    if (watch.address >= hi || watch.address + watch.bytes <= lo) continue;
    queue_callback(std::max(time, now), [this, number = number] {
      auto found = outer_watches.find(number);
      if (found == outer_watches.end()) return;
      auto on_write = found->second.on_write;
      on_write();
    });
  }
}

void EngineState::host_may_have_written() {
  for (const auto& [number, watch] : outer_watches) {
    if (watch.is_pinned) call_outer_watches(watch.address, watch.address + watch.bytes, now);
  }
  std::vector<LineWatch> changed;
  for (const auto& [line, entries] : watches) {
    for (const LineWatch& entry : entries) {
      if (entry.group->watches_pinned && !entry.group->recorder->unchanged()) {
        changed.push_back(entry);
      }
    }
  }
  for (const LineWatch& entry : changed) {
    if (entry.group->state == GroupState::kParked && entry.group->park_id == entry.park_id) {
      unpark(*entry.warp, *entry.group, now);
    }
  }
}

void wake_watchers(Context& c, uint64_t lo, uint64_t hi) { c.engine->written(lo, hi, c.now); }

}  // namespace cb::sim
