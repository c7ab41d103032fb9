// When accesses take effect, and what they cost. Weak stores are in memory at once, which only a
// program with a race could tell; strong stores become visible to everybody, the storing thread
// included, when they arrive.

#include <algorithm>
#include <bit>
#include <cstring>

#include "base/check.h"
#include "simulator/exec/engine_state.h"
#include "simulator/exec/lanes.h"
#include "simulator/exec/memory_ops_address.h"

namespace cb::sim {
namespace {

struct AddressRange {
  uint64_t first = 0;  ///< of the first active lane
  uint64_t lo = 0;
  uint64_t hi = 0;  ///< one past the last byte that the widest access could touch
};

/// Where a memory operation is about to go; nothing for accesses to shared or local memory, whose
/// addresses are offsets, and where no lane is active.
std::optional<AddressRange> address_range(const Context& c, const MicroOp* op) {
  constexpr uint64_t kWidest = 32;
  uint32_t active = c.group_mask;
  if (op->guard >= 0) {
    uint32_t wanted = c.predicates[op->guard];
    active &= (op->flags & kOpGuardNegated) != 0 ? ~wanted : wanted;
  }
  if (active == 0 || (op->flags & kOpMemory) == 0 || (op->aux & kNarrowAddress) != 0) {
    return std::nullopt;
  }
  const Meta& meta = c.meta[op->a.index];
  AddressRange range{.lo = ~uint64_t{0}};
  const auto* lanes = reinterpret_cast<const uint64_t*>(c.vectors + size_t{op->a.vector} * 64);
  bool is_first = true;
  for (uint32_t left = active; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uint64_t address =
        (meta.is_vector ? lanes[lane] : affine_lane<uint64_t>(meta, lane)) + op->immediate;
    if (is_first) range.first = address;
    is_first = false;
    range.lo = std::min(range.lo, address);
    range.hi = std::max(range.hi, address + kWidest);
    if (!meta.is_vector && meta.stride == 0) break;
  }
  if (range.lo < kWindowBase || range.hi > kWindowBase + kWindowBytes) return std::nullopt;
  return range;
}

/// Longer than any access takes that waits for nothing.
constexpr Time kLongestWay = 3'000'000;

Time half(double round_trip_ns) { return static_cast<Time>(round_trip_ns * 500); }

}  // namespace

Time EngineState::reach_time(const Context& c, const MicroOp* op) const {
  auto range = address_range(c, op);
  if (!range) return c.now;
  uint64_t address = range->first;
  if (address >= kScratchBase) return c.now;
  if (address >= kMulticastBase) return c.now + hop_ps;
  const Allocation* allocation = memory.find(address);
  if (allocation == nullptr) return c.now;
  if (allocation->on_host()) return c.now + half(profile.pcie_ns);
  if (allocation->device == c.run->launch.device) return c.now + near_ps;
  return c.now + half(profile.nvlink_load_ns);
}

std::optional<Time> EngineState::pending_overlap(const Context& c, const MicroOp* op) const {
  auto range = address_range(c, op);
  if (!range) return std::nullopt;
  std::optional<Time> latest;
  for (const PendingStore& store : c.block->pending) {
    if (store.address >= range->hi || store.end <= range->lo) continue;
    latest = std::max(latest.value_or(0), store.visible);
  }
  return latest;
}

void EngineState::charge(Context& c, const MicroOp* op) {
  const MemoryAccess& access = c.access;
  int device = c.run->launch.device;
  Resources::Charge charge;
  if (access.target == MemoryAccess::Target::kMulticast) {
    const Allocation* allocation = memory.find(access.address);
    size_t members = allocation == nullptr ? 1 : allocation->members.size();
    charge = resources.multicast(device, c.block->sm, c.now, access, static_cast<int>(members));
  } else {
    charge = resources.access(device, c.block->sm, c.now, access);
  }
  uint32_t pace = ranks[static_cast<size_t>(c.run->launch.rank)].pace;
  // What a slow rank waits for in a queue is not the way that it is slow on.
  Time done = charge.done + std::min(charge.done - c.now, kLongestWay) * (pace - 1);
  c.now = std::max(c.now, charge.issued);
  if (access.kind != MemoryAccess::Kind::kLoad) {
    c.warp->stores_done = std::max(c.warp->stores_done, done);
  }
  if ((op->flags & kOpLoad) != 0) {
    Time* ready = c.frame->ready;
    if (op->list_size != 0) {
      uint32_t results = (op->flags & kOpListSource) != 0 ? op->list_size / 2 : op->list_size;
      for (uint32_t i = 0; i < results; ++i) {
        uint16_t slot = c.code->lists[op->list + i].index;
        if (slot < c.code->num_slots) ready[slot] = done;
      }
    } else if (op->d.index < c.code->num_slots) {
      ready[op->d.index] = done;
    }
  }
  if ((op->flags & kOpAcquire) != 0) {
    c.now = std::max(c.now, done);
    resources.invalidate_l1(device, c.block->sm);
  }
}

void post_store(Context& c, const MicroOp* op, const LaneWrites& writes) {
  EngineState& engine = *c.engine;
  DelayedStore store{.writes = writes, .block = c.block, .lo = ~uint64_t{0}, .hi = 0};
  for (uint32_t left = writes.mask; left != 0; left &= left - 1) {
    auto lane = static_cast<size_t>(std::countr_zero(left));
    store.lo = std::min(store.lo, writes.addresses[lane]);
    store.hi = std::max(store.hi, writes.addresses[lane] + writes.bytes);
  }
  uint64_t index = engine.stores.size();
  if (engine.free_stores.empty()) {
    engine.stores.push_back(store);
  } else {
    index = engine.free_stores.back();
    engine.free_stores.pop_back();
    engine.stores[index] = store;
  }
  if (!c.timed) {
    engine.stores[index].block = nullptr;
    engine.apply_store(index);
    return;
  }
  Resources::Charge charge =
      engine.resources.access(c.run->launch.device, c.block->sm, c.now, c.access);
  Time visible = std::max(charge.done, engine.now);
  if ((op->flags & kOpRelease) != 0) {
    visible = std::max({visible, c.warp->stores_done, c.block->stores_done});
  }
  // Stores of a thread to one place arrive in the order in which they were made.
  for (const PendingStore& earlier : c.block->pending) {
    if (earlier.address < store.hi && earlier.end > store.lo) {
      visible = std::max(visible, earlier.visible);
    }
  }
  c.now = std::max(c.now, charge.issued);
  c.warp->stores_done = std::max(c.warp->stores_done, visible);
  c.block->pending.push_back({store.lo, store.hi, visible});
  engine.queue.push({.time = visible, .ticket = index, .kind = Event::Kind::kStore});
  c.access.kind = MemoryAccess::Kind::kNone;
}

void EngineState::apply_store(uint64_t index) {
  DelayedStore& store = stores[index];
  const LaneWrites& writes = store.writes;
  // The buffer may have been freed while the store was on its way.
  for (uint32_t left = writes.mask; left != 0; left &= left - 1) {
    auto lane = static_cast<size_t>(std::countr_zero(left));
    const Allocation* allocation = memory.find(writes.addresses[lane]);
    if (allocation == nullptr || !allocation->alive) continue;
    if (allocation->kind == Allocation::Kind::kReserved) continue;
    std::memcpy(reinterpret_cast<void*>(writes.addresses[lane]), writes.data[lane].data(),
                writes.bytes);
  }
  if (store.block != nullptr) {
    auto& pending = store.block->pending;
    auto place = std::find_if(pending.begin(), pending.end(), [&](const PendingStore& other) {
      return other.address == store.lo && other.end == store.hi && other.visible <= now;
    });
    if (place != pending.end()) pending.erase(place);
  }
  uint64_t lo = store.lo;
  uint64_t hi = store.hi;
  free_stores.push_back(index);
  if (filter.num_watches != 0 && lo < hi) written(lo, hi, now);
}

void fence(Context& c, Scope scope) {
  if (!c.timed) return;
  const EngineState& engine = *c.engine;
  const Profile& profile = engine.profile;
  double cost_ns = scope == Scope::kBlock    ? profile.fence_block_ns
                   : scope == Scope::kSystem ? profile.fence_sys_ns
                                             : profile.fence_gpu_ns;
  if (scope != Scope::kBlock) {
    c.now = std::max({c.now, c.warp->stores_done, c.block->stores_done});
    c.engine->resources.invalidate_l1(c.run->launch.device, c.block->sm);
  }
  c.now += static_cast<Time>(cost_ns * 1000);
}

void sleep_ns(Context& c, uint64_t ns) {
  // PTX lets nanosleep end anywhere between 0 and twice the time; its longest is a millisecond.
  constexpr uint64_t kLongestNs = 1'000'000;
  c.now += std::min(ns, kLongestNs) * 1000;
}

uint64_t clock_cycles(const Context& c) {
  if (c.recorder != nullptr) c.recorder->see_clock();
  return c.now / c.engine->cycle_ps;
}

uint64_t global_timer_ns(const Context& c) {
  if (c.recorder != nullptr) c.recorder->see_clock();
  return c.now / 1000;
}

}  // namespace cb::sim
