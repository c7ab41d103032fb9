// Asynchronous copies on their way: what they cost, when their sources are read and their
// destinations written, and whom they tell.

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "simulator/exec/async_copy.h"
#include "simulator/exec/engine_state.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

/// Of all copies that are on their way: descriptions, and bytes read but not written.
constexpr uint64_t kMaxBytesInFlight = uint64_t{1} << 30;
/// Longer than any copy takes that waits for nothing.
constexpr Time kLongestWay = 3'000'000;
constexpr uint64_t kSectorBytes = 32;

/// What a copy does to the memory of one device, or of the host.
struct Side {
  MemoryAccess access;
  bool writes = false;
};

bool is_shared(uint64_t address) { return address >= kScratchBase; }

class Bill {
 public:
  Bill(const AddressSpace& memory, const AsyncCopy& copy) : memory_(memory) {
    for (const CopyPiece& piece : copy.pieces) {
      if (piece.source != 0) add(piece.source, piece.source_step, piece, false, copy);
      add(piece.destination, piece.destination_step, piece, true, copy);
    }
  }
  const std::vector<Side>& sides() const { return sides_; }

 private:
  void add(uint64_t address, int64_t step, const CopyPiece& piece, bool writes,
           const AsyncCopy& copy) {
    if (is_shared(address)) return;
    const Allocation* allocation = memory_.find(address);
    if (allocation == nullptr) return;
    auto device = static_cast<uint16_t>(allocation->device);
    auto target =
        allocation->on_host() ? MemoryAccess::Target::kPinned : MemoryAccess::Target::kDevice;
    auto same = std::find_if(sides_.begin(), sides_.end(), [&](const Side& side) {
      return side.writes == writes && side.access.device == device && side.access.target == target;
    });
    if (same == sides_.end()) {
      Side side;
      side.writes = writes;
      side.access.kind = !writes                  ? MemoryAccess::Kind::kLoad
                         : copy.reduce != nullptr ? MemoryAccess::Kind::kReduction
                                                  : MemoryAccess::Kind::kStore;
      side.access.target = target;
      side.access.device = device;
      side.access.strong = !copy.through_l1;
      side.access.address = ~uint64_t{0};
      same = sides_.insert(sides_.end(), side);
    }
    MemoryAccess& access = same->access;
    for (uint32_t row = 0; row < piece.rows; ++row) {
      uint64_t lo = address + static_cast<uint64_t>(step * static_cast<int64_t>(row));
      uint64_t hi = lo + piece.bytes;
      access.address = std::min(access.address, lo);
      access.end = std::max(access.end, hi);
      access.bytes += piece.bytes;
      access.sectors += static_cast<uint32_t>((hi - 1) / kSectorBytes - lo / kSectorBytes + 1);
    }
  }

  const AddressSpace& memory_;
  std::vector<Side> sides_;
};

uint64_t bytes_held(const AsyncCopy& copy) {
  return sizeof(CopyInFlight) + copy.pieces.size() * sizeof(CopyPiece) + copy.data.size() +
         copy.signals.size() * sizeof(CopySignal);
}

bool reads_shared(const AsyncCopy& copy) {
  return copy.data.empty() && std::any_of(copy.pieces.begin(), copy.pieces.end(),
                                          [](const CopyPiece& p) { return is_shared(p.source); });
}

bool is_of(const Block& block, uint64_t address) {
  return address >= block.shared_base && address < block.shared_base + block.shared_bytes;
}

/// Drops what a copy would do to a block that has ended.
void forget_block(AsyncCopy& copy, const Block& block) {
  if (copy.data.empty()) {
    std::erase_if(copy.pieces, [&](const CopyPiece& p) {
      return is_of(block, p.destination) || is_of(block, p.source);
    });
  } else if (std::any_of(copy.pieces.begin(), copy.pieces.end(),
                         [&](const CopyPiece& p) { return is_of(block, p.destination); })) {
    copy.pieces.clear();
  }
  std::erase_if(copy.signals, [&](const CopySignal& s) { return s.block == &block; });
  std::erase(copy.blocks, &block);
}

CopyGroups& groups_of(WarpCopies& copies, CopyGroupKind kind, int lane) {
  auto index = static_cast<size_t>(lane);
  return kind == CopyGroupKind::kAsync ? copies.async[index] : copies.bulk[index];
}

WarpCopies& copies_of(Context& c) {
  if (c.warp->copies == nullptr) c.warp->copies = std::make_unique<WarpCopies>();
  return *c.warp->copies;
}

std::string problem_text(const CopySignal& signal, const std::string& problem) {
  return fmt::format("mbarrier at shared +{}: {}", signal.address - signal.block->shared_base,
                     problem);
}

}  // namespace

CopyGroups::Times EngineState::charge_copy(Context& c, const MicroOp* op, const AsyncCopy& copy) {
  int device = c.run->launch.device;
  uint32_t sm = c.block->sm;
  Time shared_ps = profile.shared_cycles * cycle_ps;
  CopyGroups::Times times{c.now, c.now};
  Bill bill(memory, copy);
  bool any_store = false;
  for (const Side& side : bill.sides()) {
    Resources::Charge charge;
    if (copy.carrier == AsyncCopy::Carrier::kLoadStore) {
      charge = resources.access(device, sm, c.now, side.access);
      c.now = std::max(c.now, charge.issued);
    } else {
      charge = resources.bulk(device, sm, c.now, side.access);
    }
    if (c.run->costs != nullptr) {
      LineLedger::add_bytes(*c.run->costs, *c.code, static_cast<uint32_t>(op - c.code->ops.data()),
                            device, side.access, side.access.bytes);
    }
    any_store |= side.writes;
    if (side.writes) times.read = std::max(times.read, charge.issued + shared_ps);
    times.done = std::max(times.done, charge.done + shared_ps);
  }
  if (bill.sides().empty() && copy.carrier != AsyncCopy::Carrier::kLoadStore) {
    for (const Block* block : copy.blocks) {
      Time done = resources.within_cluster(device, sm, block->sm, c.now, copy.total_bytes());
      times.done = std::max(times.done, done);
    }
    if (reads_shared(copy)) times.read += shared_ps;
  } else if (!any_store) {
    times.read = times.done;
  }
  uint32_t pace = ranks[static_cast<size_t>(c.run->launch.rank)].pace;
  Time way = times.done > c.now ? times.done - c.now : 0;
  times.done += std::min(way, kLongestWay) * (pace - 1);
  times.done = std::max({times.done, copy.not_before, times.read});
  return times;
}

bool start_copy(Context& c, const MicroOp* op, uint32_t lanes, AsyncCopy copy) {
  EngineState& engine = *c.engine;
  if (!c.timed) {
    write_destination(copy);
    engine.note_arrival(copy);
    for (const CopySignal& signal : copy.signals) {
      if (auto problem = engine.tell_barrier(signal)) {
        fault(c, op, Finding::Kind::kIllegalInstruction, std::countr_zero(lanes),
              problem_text(signal, *problem), signal.address, BarrierState::kBytes, true);
        return false;
      }
    }
    return true;
  }
  if (engine.copy_bytes + bytes_held(copy) > kMaxBytesInFlight) {
    fault(c, op, Finding::Kind::kLimit, std::countr_zero(lanes),
          "asynchronous copies on their way that need more than 1 GiB");
    return false;
  }
  CopyGroups::Times times = engine.charge_copy(c, op, copy);
  if (copy.group != AsyncCopy::Group::kNone) {
    auto kind =
        copy.group == AsyncCopy::Group::kAsync ? CopyGroupKind::kAsync : CopyGroupKind::kBulk;
    for (uint32_t left = lanes; left != 0; left &= left - 1) {
      groups_of(copies_of(c), kind, std::countr_zero(left)).add(times);
    }
  }
  engine.send_copy(c, op, std::countr_zero(lanes), std::move(copy), times);
  return true;
}

void EngineState::send_copy(Context& c, const MicroOp* op, int lane, AsyncCopy copy,
                            CopyGroups::Times times) {
  uint64_t index = copies.size();
  if (free_copies.empty()) {
    copies.emplace_back();
  } else {
    index = free_copies.back();
    free_copies.pop_back();
  }
  CopyInFlight& flight = copies[index];
  flight = {};
  flight.is_active = true;
  flight.run = c.run->id;
  flight.times = times;
  flight.origin = {c.code, static_cast<uint32_t>(op - c.code->ops.data()),
                   c.warp->index * kLanes + static_cast<uint32_t>(lane)};
  std::copy(std::begin(c.block->index), std::end(c.block->index), std::begin(flight.origin.block));
  flight.copy = std::move(copy);
  flight.bytes_held = bytes_held(flight.copy);
  copy_bytes += flight.bytes_held;
  for (Block* block : flight.copy.blocks) ++block->copies_in_flight;
  c.run->end = std::max(c.run->end, times.done);
  if (reads_shared(flight.copy) && times.read < times.done) {
    queue.push(
        {.time = std::max(times.read, now), .ticket = index, .kind = Event::Kind::kCopyRead});
  }
  queue.push({.time = std::max(times.done, now), .ticket = index, .kind = Event::Kind::kCopyDone});
}

void EngineState::read_copy(uint64_t index) {
  CopyInFlight& flight = copies[index];
  // The entry may have been cancelled, or belong to another copy by now, which does no harm.
  if (!flight.is_active || !flight.copy.data.empty() || flight.times.read > now) return;
  gather_source(flight.copy);
  copy_bytes += flight.copy.data.size();
  flight.bytes_held += flight.copy.data.size();
}

void EngineState::finish_copy(uint64_t index) {
  CopyInFlight flight = std::move(copies[index]);
  copies[index] = {};
  free_copies.push_back(index);
  copy_bytes -= flight.bytes_held;
  if (!flight.is_active) return;
  AsyncCopy& copy = flight.copy;
  for (Block* block : copy.blocks) --block->copies_in_flight;
  // Global memory may have been freed while the copy was on its way.
  auto is_there = [&](uint64_t address, int64_t step, const CopyPiece& piece) {
    if (address == 0 || is_shared(address)) return true;
    const Allocation* allocation = memory.find(address);
    if (allocation == nullptr || !allocation->alive) return false;
    uint64_t last = address + static_cast<uint64_t>(step * (int64_t{piece.rows} - 1));
    return std::min(address, last) >= allocation->base &&
           std::max(address, last) + piece.bytes <= allocation->end();
  };
  bool all_there = std::all_of(copy.pieces.begin(), copy.pieces.end(), [&](const CopyPiece& p) {
    return is_there(p.destination, p.destination_step, p) &&
           (!copy.data.empty() || is_there(p.source, p.source_step, p));
  });
  if (!all_there) copy.pieces.clear();
  write_destination(copy);
  note_arrival(copy);
  for (const CopySignal& signal : copy.signals) {
    if (auto problem = tell_barrier(signal)) {
      KernelRun& run = *signal.block->run;
      blame(flight, run, Finding::Kind::kIllegalInstruction, problem_text(signal, *problem));
      abandon(run);
      return;
    }
  }
}

void EngineState::note_arrival(const AsyncCopy& copy) {
  if (filter.num_watches == 0) return;
  for (const CopyPiece& piece : copy.pieces) {
    for (uint32_t row = 0; row < piece.rows; ++row) {
      uint64_t lo = piece.destination +
                    static_cast<uint64_t>(piece.destination_step * static_cast<int64_t>(row));
      written(lo, lo + piece.bytes, now);
    }
  }
}

std::optional<std::string> EngineState::tell_barrier(const CopySignal& signal) {
  auto* place = reinterpret_cast<uint64_t*>(signal.address);
  BarrierState state(*place);
  if (auto problem = state.apply(signal.update)) return problem;
  *place = state.bits();
  if (filter.num_watches != 0) {
    written(signal.address, signal.address + BarrierState::kBytes, now);
  }
  return std::nullopt;
}

void EngineState::blame(const CopyInFlight& flight, KernelRun& run, Finding::Kind kind,
                        const std::string& detail) {
  if (findings.size() >= kMaxFindings) return;
  const CopyOrigin& origin = flight.origin;
  findings.push_back({.kind = kind,
                      .time_ps = now,
                      .place = place_of(run, origin.block, origin.thread, *origin.code, origin.pc),
                      .detail = detail});
}

bool EngineState::copies_let_end(Block& block, Time end) {
  if (block.copies_in_flight == 0) return true;
  for (uint64_t index = 0; index < copies.size(); ++index) {
    CopyInFlight& flight = copies[index];
    AsyncCopy& copy = flight.copy;
    bool is_ours = flight.is_active &&
                   std::find(copy.blocks.begin(), copy.blocks.end(), &block) != copy.blocks.end();
    if (!is_ours) continue;
    bool reads = copy.data.empty() &&
                 std::any_of(copy.pieces.begin(), copy.pieces.end(),
                             [&](const CopyPiece& piece) { return is_of(block, piece.source); });
    bool writes = !copy.signals.empty() ||
                  std::any_of(copy.pieces.begin(), copy.pieces.end(), [&](const CopyPiece& piece) {
                    return is_of(block, piece.destination);
                  });
    if (reads && flight.times.read > end) {
      blame(flight, *block.run, Finding::Kind::kUseAfterFree,
            "the block has ended before this copy read its shared memory: wait for it, with "
            "cp.async.bulk.wait_group.read or on the mbarrier");
      return false;
    }
    if (reads) {
      gather_source(copy);
      copy_bytes += copy.data.size();
      flight.bytes_held += copy.data.size();
    }
    // What a thread loads for itself and does not wait for is dropped with it.
    bool is_own_load = copy.carrier == AsyncCopy::Carrier::kLoadStore;
    if (writes && !is_own_load && flight.times.done > end) {
      blame(flight, *block.run, Finding::Kind::kUseAfterFree,
            "the block whose shared memory this writes has ended before it arrived there");
      return false;
    }
  }
  return true;
}

void EngineState::drop_copies(Block& block) {
  if (block.copies_in_flight == 0) return;
  for (CopyInFlight& flight : copies) {
    if (!flight.is_active) continue;
    if (block.run->failed && flight.run == block.run->id) {
      for (Block* other : flight.copy.blocks) --other->copies_in_flight;
      flight.is_active = false;
      continue;
    }
    auto& blocks = flight.copy.blocks;
    if (std::find(blocks.begin(), blocks.end(), &block) != blocks.end()) {
      forget_block(flight.copy, block);
    }
  }
  block.copies_in_flight = 0;
}

void commit_copies(Context& c, CopyGroupKind kind) {
  if (!c.timed) return;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    groups_of(copies_of(c), kind, std::countr_zero(left)).commit(c.engine->now);
  }
}

bool wait_for_copies(Context& c, const MicroOp* op, CopyGroupKind kind, uint32_t allowed,
                     bool reads_only) {
  if (!c.timed || c.warp->copies == nullptr) return true;
  Time until = 0;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    CopyGroups::Times times =
        groups_of(*c.warp->copies, kind, std::countr_zero(left)).all_but(allowed);
    until = std::max(until, reads_only ? times.read : times.done);
  }
  c.now = std::max(c.now, until);
  if (until <= c.engine->now) return true;
  c.group->pc = static_cast<uint32_t>(op - c.code->ops.data());
  c.stop = Stop::kYield;
  return false;
}

Time async_copies_done(const Context& c, int lane) {
  if (c.warp->copies == nullptr) return 0;
  return c.warp->copies->async[static_cast<size_t>(lane)].all().done;
}

void charge_barrier(Context& c, bool waits) {
  if (!c.timed) return;
  MemoryAccess access;
  access.kind = MemoryAccess::Kind::kAtomic;
  access.target = MemoryAccess::Target::kShared;
  access.conflicts = static_cast<uint32_t>(std::popcount(c.mask));
  Resources::Charge charge =
      c.engine->resources.access(c.run->launch.device, c.block->sm, c.now, access);
  c.now = std::max(c.now, waits ? charge.done : charge.issued);
}

}  // namespace cb::sim
