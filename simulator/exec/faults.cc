// Findings about kernels: where they happened, in the words of the source.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "simulator/exec/engine_state.h"
#include "simulator/exec/shared_window.h"

namespace cb::sim {
namespace {

constexpr size_t kShownInstruction = 160;

/// Whether a file is the toolkit's: a finding names the line of the program that used it.
bool is_toolkit_file(std::string_view path) {
  for (std::string_view part : {"/targets/x86_64-linux/", "/cuda/include/", "/include/cccl/",
                                "/include/crt/", "cooperative_groups", "/libcudacxx/"}) {
    if (path.find(part) != std::string_view::npos) return true;
  }
  return false;
}

/// A place in the shared memory of the block or of another one of its cluster.
std::string shared_name(const Block& block, uint64_t address) {
  std::optional<uint32_t> rank = rank_of_shared(block, address);
  if (!rank || *rank == block.cluster_rank) {
    return fmt::format("shared memory + {}", address - block.shared_base);
  }
  return fmt::format("shared memory of block {} of the cluster + {}", *rank,
                     address - shared_base_of(block, *rank));
}

std::string read_value(const Watch& watch, uint64_t& value) {
  value = 0;
  std::memcpy(&value, reinterpret_cast<const void*>(watch.address),
              std::min<uint32_t>(watch.bytes, sizeof value));
  return fmt::format("{}", value);
}

}  // namespace

void set_source(CodePlace& place, const ptx::Module& module, int32_t index) {
  while (index >= 0) {
    const ptx::Location& location = module.locations[static_cast<size_t>(index)];
    if (location.file < module.files.size()) {
      place.file = module.files[location.file];
      place.line = location.line;
      if (!is_toolkit_file(place.file)) return;
    }
    index = location.inlined_at;
  }
}

CodePlace EngineState::place_of(const Warp& warp, const Frame& frame, uint32_t pc, int lane) const {
  const Block& block = *warp.block;
  return place_of(*block.run, block.index, warp.index * kLanes + static_cast<uint32_t>(lane),
                  *frame.code, pc);
}

CodePlace EngineState::place_of(const KernelRun& run, const uint32_t* block, uint32_t thread,
                                const FunctionCode& code, uint32_t pc) const {
  CodePlace place;
  place.kernel = run.launch.name;
  place.rank = run.launch.rank;
  place.device = run.launch.device % profile.devices_per_node;
  std::copy_n(block, 3, place.block);
  const uint32_t* shape = run.launch.block;
  place.thread[0] = thread % shape[0];
  place.thread[1] = thread / shape[0] % shape[1];
  place.thread[2] = thread / shape[0] / shape[1];
  if (pc >= code.info.size()) return place;
  uint32_t index = code.info[pc].instruction;
  if (index >= code.source->body.size()) return place;
  const ptx::Instruction& instruction = code.source->body[index];
  place.instruction = instruction.full_name().substr(0, kShownInstruction);
  place.ptx_line = instruction.text_line;
  set_source(place, *run.launch.program->module, instruction.location);
  return place;
}

const MicroOp* fault(Context& c, const MicroOp* op, Finding::Kind kind, int lane,
                     const std::string& detail, uint64_t address, uint32_t bytes, bool write) {
  EngineState& engine = *c.engine;
  c.stop = Stop::kFault;
  c.run->failed = true;
  c.run->end = std::max(c.run->end, c.now);
  if (engine.findings.size() >= kMaxFindings) return nullptr;
  auto pc = static_cast<uint32_t>(op - c.code->ops.data());
  engine.findings.push_back({.kind = kind,
                             .time_ps = c.now,
                             .place = engine.place_of(*c.warp, *c.frame, pc, lane),
                             .detail = detail,
                             .address = address,
                             .bytes = bytes,
                             .write = write});
  return nullptr;
}

std::vector<Waiter> EngineState::waiters(size_t limit) const {
  std::vector<Waiter> result;
  std::vector<const Block*> blocks;
  for (const auto& [id, run] : runs) {
    for (const auto& block : run->blocks) blocks.push_back(block.get());
  }
  std::sort(blocks.begin(), blocks.end(), [](const Block* a, const Block* b) {
    return std::tuple(a->run->launch.rank, a->run->id, a->linear) <
           std::tuple(b->run->launch.rank, b->run->id, b->linear);
  });
  // Who waits for memory first: the barriers behind it wait for them.
  for (bool parked : {true, false}) {
    for (const Block* block : blocks) {
      for (const Warp* warp : block->warps) {
        for (const auto& group : warp->groups) {
          if (group->state == GroupState::kReady) continue;
          if ((group->state == GroupState::kParked) != parked) continue;
          if (result.size() >= limit) return result;
          result.push_back(describe_waiter(*warp, *group));
        }
      }
    }
  }
  return result;
}

Waiter EngineState::describe_waiter(const Warp& warp, const Group& group) const {
  const Block& block = *warp.block;
  Waiter waiter;
  uint32_t pc = group.state == GroupState::kParked ? group.spin_pc : group.pc;
  waiter.place = place_of(warp, *group.frame, pc, std::countr_zero(group.mask));
  waiter.num_threads = static_cast<uint32_t>(std::popcount(group.mask));
  if (group.state == GroupState::kBarrier) {
    const BlockBarrier& barrier = block.barriers[group.barrier];
    uint32_t expected = barrier.expected;
    if (expected == 0) {
      for (const Warp* other : block.warps) {
        expected += static_cast<uint32_t>(std::popcount(other->live));
      }
    }
    waiter.waits_for = fmt::format("barrier {}: {} of {} threads have arrived", group.barrier,
                                   barrier.arrived, expected);
  } else if (group.state == GroupState::kCluster) {
    const ClusterBarrier& barrier =
        block.cluster == nullptr ? block.own_barrier : block.cluster->barrier;
    waiter.waits_for = fmt::format("the barrier of its cluster: {} of {} threads have arrived",
                                   barrier.arrived, barrier.live);
  } else if (group.state == GroupState::kGrids) {
    waiter.waits_for = "the end of the kernels before it in its stream";
  } else if (group.state == GroupState::kExchange) {
    waiter.waits_for = fmt::format("lanes {:#010x} of its warp; {:#010x} are here",
                                   group.exchange_mask, group.mask);
  } else if (group.state == GroupState::kRegisters) {
    waiter.waits_for = fmt::format("registers; its warp has {} a thread, and {} are spare",
                                   warp.registers, block.spare_registers);
  } else if (!group.watches.empty()) {
    const Watch& watch = group.watches.front();
    waiter.address = watch.address;
    std::string value = read_value(watch, waiter.value);
    if (watch.is_mbarrier) {
      waiter.waits_for =
          fmt::format("mbarrier at shared +{}: {}", watch.address - block.shared_base,
                      BarrierState(waiter.value).describe());
      return waiter;
    }
    std::string where = watch.address >= kScratchBase ? shared_name(block, watch.address)
                                                      : memory.describe(watch.address);
    waiter.waits_for = fmt::format("a write to {}, which holds {}", where, value);
    std::string awaited = awaited_value(group);
    if (!awaited.empty()) waiter.waits_for += fmt::format("; it waits while that is {}", awaited);
    if (group.watches.size() > 1) {
      waiter.waits_for += fmt::format(" (and to {} more places)", group.watches.size() - 1);
    }
  }
  return waiter;
}

size_t Engine::num_waiters() const {
  size_t count = 0;
  for (const auto& [id, run] : state_->runs) {
    for (const auto& block : run->blocks) {
      for (const Warp* warp : block->warps) count += warp->groups.size();
    }
  }
  return count;
}

}  // namespace cb::sim
