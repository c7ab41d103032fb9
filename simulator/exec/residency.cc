// Which blocks run where. Blocks start in the order of their index, on the multiprocessor with the
// fewest blocks, as long as it has room; a grid whose blocks wait for each other hangs here exactly
// when it would on hardware.

#include <algorithm>
#include <cstring>

#include "base/check.h"
#include "simulator/exec/engine_state.h"
#include "simulator/protocol/occupancy.h"

namespace cb::sim {
namespace {

constexpr uint64_t kWorkspaceBytes = 4096;
/// What shared and local memory holds before it is written: a pattern that no test mistakes for
/// data, and nothing that an earlier block left.
constexpr int kUndefinedByte = 0xd5;
/// Lane stack where the depth of calls, or what alloca takes, is not known.
constexpr uint64_t kCallStackBytes = 4096;
/// Shared and local memory of all resident blocks together.
constexpr uint64_t kMaxScratchBytes = uint64_t{6} << 30;

BlockShape shape_of(const KernelRun& run) {
  return {.threads = run.threads_per_block,
          .registers_per_thread = run.launch.registers,
          .shared_bytes = run.launch.static_shared_bytes + run.launch.dynamic_shared_bytes};
}

uint64_t registers_of(const KernelRun& run) {
  uint64_t per_warp = (uint64_t{run.launch.registers} * kWarpSize + kRegisterUnit - 1) /
                      kRegisterUnit * kRegisterUnit;
  return per_warp * run.warps_per_block;
}

uint64_t shared_of(const KernelRun& run, const DeviceInfo& device) {
  return shape_of(run).shared_bytes + device.reserved_shared_per_block_bytes;
}

}  // namespace

void EngineState::start_run(KernelRun& run) {
  const KernelLaunch& launch = run.launch;
  const Program& program = *launch.program;
  run.accessor = {.rank = launch.rank, .device = launch.device};
  run.sites.resize(program.num_sites);
  run.threads_per_block = launch.block[0] * launch.block[1] * launch.block[2];
  run.warps_per_block = (run.threads_per_block + kWarpSize - 1) / kWarpSize;
  run.num_blocks = uint64_t{launch.grid[0]} * launch.grid[1] * launch.grid[2];
  run.blocks_per_sm = blocks_per_sm(profile.device, shape_of(run));
  run.cluster_blocks = launch.cluster[0] * launch.cluster[1] * launch.cluster[2];
  uint64_t align = std::max<uint32_t>(program.dynamic_shared_align, 16);
  run.dynamic_shared_offset = (program.static_shared_bytes + align - 1) / align * align;
  run.user_shared_bytes = run.dynamic_shared_offset + launch.dynamic_shared_bytes;
  run.reserved_shared_offset = (run.user_shared_bytes + 127) / 128 * 128;
  run.reserved_shared_bytes = profile.device.reserved_shared_per_block_bytes;
  run.shared_bytes = program.uses_reserved_shared
                         ? run.reserved_shared_offset + run.reserved_shared_bytes
                         : run.user_shared_bytes;
  run.local_lane_bytes = program.max_depth_bytes;
  if (program.recursive || program.takes_stack) run.local_lane_bytes += kCallStackBytes;
  run.local_lane_bytes = (run.local_lane_bytes + 15) / 16 * 16;
  run.param_bytes = program.param_bytes;
  run.param_base = scratch.allocate(std::max<uint64_t>(run.param_bytes, 16));
  RankState& rank = ranks[static_cast<size_t>(launch.rank)];
  if (launch.cooperative) {
    AddressSpace::Request request{.rank = launch.rank,
                                  .device = launch.device,
                                  .bytes = kWorkspaceBytes,
                                  .kind = Allocation::Kind::kModule,
                                  .label = "grid barrier"};
    const Allocation* workspace = memory.allocate(request);
    if (workspace != nullptr) {
      run.workspace = workspace->base;
      std::memset(reinterpret_cast<void*>(run.workspace), 0, kWorkspaceBytes);
    }
  }
  if (run.param_base == 0 || (launch.cooperative && run.workspace == 0)) {
    findings.push_back({.kind = Finding::Kind::kLimit,
                        .time_ps = now,
                        .detail = "no memory for the launch of " + launch.name});
    run.failed = true;
    end_run(run);
    return;
  }
  std::memcpy(reinterpret_cast<void*>(run.param_base), launch.parameters.data(),
              std::min<uint64_t>(run.param_bytes, launch.parameters.size()));
  ++rank.stats.kernels;
  if (options.ledger != nullptr && options.timed) run.costs = options.ledger->open(launch);
  run.end = now;
  DeviceState& device = devices[static_cast<size_t>(launch.device)];
  auto place = std::find_if(device.waiting.begin(), device.waiting.end(), [&](KernelRun* other) {
    return other->launch.priority > launch.priority;
  });
  device.waiting.insert(place, &run);
  dispatch(launch.device);
}

void EngineState::dispatch(int index) {
  DeviceState& device = devices[static_cast<size_t>(index)];
  while (!device.waiting.empty()) {
    KernelRun& run = *device.waiting.front();
    while (run.next_block < run.num_blocks) {
      if (!has_room(run)) {
        abandon(run);
        return;
      }
      if (!(run.cluster_blocks == 1 ? place_block(run) : place_cluster(run))) return;
    }
    auto place = std::find(device.waiting.begin(), device.waiting.end(), &run);
    if (place != device.waiting.end()) device.waiting.erase(place);
  }
}

bool EngineState::has_room(KernelRun& run) {
  uint64_t bytes = run.shared_bytes + run.warps_per_block * run.local_lane_bytes * kLanes;
  bytes *= run.cluster_blocks;
  if (scratch.bytes_in_use() + bytes <= kMaxScratchBytes) return true;
  findings.push_back({.kind = Finding::Kind::kLimit,
                      .time_ps = now,
                      .place = {.kernel = run.launch.name, .rank = run.launch.rank},
                      .detail = "the resident blocks of all kernels need more than 6 GiB of shared "
                                "and local memory"});
  return false;
}

uint64_t EngineState::undefined_memory(uint64_t bytes) {
  uint64_t base = scratch.allocate(bytes);
  CB_CHECK(base != 0, "has_room bounds what is resident");
  std::memset(reinterpret_cast<void*>(base), kUndefinedByte, bytes);
  return base;
}

bool EngineState::has_room_for(const KernelRun& run, const SmState& sm, uint32_t blocks) const {
  const DeviceInfo& info = profile.device;
  return sm.blocks + blocks <= run.blocks_per_sm &&
         sm.warps + blocks * run.warps_per_block <= info.max_threads_per_sm / kWarpSize &&
         sm.registers + blocks * registers_of(run) <= info.registers_per_sm &&
         sm.shared_bytes + blocks * shared_of(run, info) <= info.shared_per_sm_bytes;
}

void EngineState::occupy(const KernelRun& run, SmState& sm) {
  ++sm.blocks;
  sm.warps += run.warps_per_block;
  sm.registers += registers_of(run);
  sm.shared_bytes += shared_of(run, profile.device);
}

SmState* EngineState::emptiest(const KernelRun& run, std::span<SmState> sms) const {
  SmState* best = nullptr;
  for (SmState& sm : sms) {
    if (best != nullptr && sm.blocks >= best->blocks) continue;
    if (has_room_for(run, sm, 1)) best = &sm;
  }
  return best;
}

bool EngineState::place_block(KernelRun& run) {
  std::vector<SmState>& sms = devices[static_cast<size_t>(run.launch.device)].sms;
  SmState* sm = emptiest(run, sms);
  if (sm == nullptr) return false;
  occupy(run, *sm);
  start_block(run, run.next_block++, static_cast<uint32_t>(sm - sms.data()));
  return true;
}

bool EngineState::place_cluster(KernelRun& run) {
  std::vector<SmState>& sms = devices[static_cast<size_t>(run.launch.device)].sms;
  const DeviceInfo& info = profile.device;
  std::span<SmState> best;
  uint64_t most = 0;
  size_t first = 0;
  for (uint32_t gpc = 0; gpc < info.num_gpcs; first += info.gpc_sms[gpc], ++gpc) {
    std::span<SmState> candidate = std::span(sms).subspan(first, info.gpc_sms[gpc]);
    uint64_t room = 0;
    for (const SmState& sm : candidate) {
      uint32_t blocks = 0;
      while (has_room_for(run, sm, blocks + 1)) ++blocks;
      room += blocks;
    }
    if (room > most) {
      most = room;
      best = candidate;
    }
  }
  if (most < run.cluster_blocks) return false;
  const uint32_t* grid = run.launch.grid;
  const uint32_t* shape = run.launch.cluster;
  uint64_t number = run.next_block / run.cluster_blocks;
  uint64_t columns = grid[0] / shape[0], rows = grid[1] / shape[1];
  uint64_t origin[3] = {number % columns * shape[0], number / columns % rows * shape[1],
                        number / columns / rows * shape[2]};
  auto cluster = std::make_unique<Cluster>();
  for (uint32_t rank = 0; rank < run.cluster_blocks; ++rank) {
    SmState* sm = emptiest(run, best);
    CB_CHECK(sm != nullptr, "the GPC has room for the cluster");
    occupy(run, *sm);
    uint64_t x = origin[0] + rank % shape[0];
    uint64_t y = origin[1] + rank / shape[0] % shape[1];
    uint64_t z = origin[2] + rank / shape[0] / shape[1];
    uint64_t linear = (z * grid[1] + y) * grid[0] + x;
    ++run.next_block;
    start_block(run, linear, static_cast<uint32_t>(sm - sms.data()), cluster.get());
  }
  run.clusters.push_back(std::move(cluster));
  return true;
}

void EngineState::join_cluster(Block& block, Cluster& cluster) {
  block.cluster = &cluster;
  block.cluster_rank = static_cast<uint32_t>(cluster.blocks.size());
  cluster.blocks.push_back(&block);
  cluster.shared_bases.push_back(block.shared_base);
  cluster.shared_bytes = block.shared_bytes;
  ++cluster.live_blocks;
  cluster.barrier.live += block.run->threads_per_block;
}

void EngineState::start_block(KernelRun& run, uint64_t linear, uint32_t sm, Cluster* cluster) {
  auto owned = std::make_unique<Block>();
  Block& block = *owned;
  run.blocks.push_back(std::move(owned));
  block.run = &run;
  block.linear = linear;
  const uint32_t* grid = run.launch.grid;
  block.index[0] = static_cast<uint32_t>(block.linear % grid[0]);
  block.index[1] = static_cast<uint32_t>(block.linear / grid[0] % grid[1]);
  block.index[2] = static_cast<uint32_t>(block.linear / grid[0] / grid[1]);
  block.sm = sm;
  block.shared_bytes = run.shared_bytes;
  uint64_t local_bytes = run.local_lane_bytes * kLanes;
  if (run.shared_bytes > 0) block.shared_base = undefined_memory(run.shared_bytes);
  if (run.launch.program->uses_reserved_shared) {
    std::memset(reinterpret_cast<void*>(block.shared_base + run.reserved_shared_offset), 0,
                run.reserved_shared_bytes);
  }
  block.own_barrier.live = run.threads_per_block;
  if (cluster != nullptr) join_cluster(block, *cluster);
  resources.invalidate_l1(run.launch.device, sm);
  ++ranks[static_cast<size_t>(run.launch.rank)].stats.blocks;
  block.live_warps = run.warps_per_block;
  if (options.observer != nullptr) {
    options.observer->block_started(run.launch, run.id, block.linear, sm, now);
  }
  const FunctionCode& code = *run.launch.program->functions.front();
  SmState& state = devices[static_cast<size_t>(run.launch.device)].sms[sm];
  for (uint32_t i = 0; i < run.warps_per_block; ++i) {
    if (free_warps.empty()) {
      warps.push_back(std::make_unique<Warp>());
      free_warps.push_back(warps.back().get());
    }
    Warp& warp = *free_warps.back();
    free_warps.pop_back();
    warp.block = &block;
    warp.index = i;
    warp.slot = state.next_slot++;
    uint32_t lanes = std::min(run.threads_per_block - i * kWarpSize, kWarpSize);
    warp.live = lanes == kWarpSize ? kAllLanes : (1u << lanes) - 1;
    warp.stores_done = 0;
    warp.tensor = {};
    warp.registers = run.launch.registers;
    warp.cluster_arrived = 0;
    warp.cluster_passed = 0;
    warp.local_lane_bytes = run.local_lane_bytes;
    warp.local_base = local_bytes == 0 ? 0 : undefined_memory(local_bytes);
    warp.frames.push_back(make_frame(warp, code, warp.live, 0));
    auto group = std::make_unique<Group>();
    group->frame = warp.frames.back().get();
    group->mask = warp.live;
    group->now = now;
    warp.groups.push_back(std::move(group));
    block.warps.push_back(&warp);
    queue_warp(warp, now);
  }
}

void EngineState::free_shared(Block& block) {
  if (block.cluster == nullptr) {
    if (block.shared_base != 0) scratch.release(block.shared_base, block.shared_bytes);
    return;
  }
  Cluster& cluster = *block.cluster;
  cluster.blocks[block.cluster_rank] = nullptr;
  if (--cluster.live_blocks != 0) return;
  for (uint64_t base : cluster.shared_bases) {
    if (base != 0) scratch.release(base, cluster.shared_bytes);
  }
  std::erase_if(block.run->clusters, [&](const auto& other) { return other.get() == &cluster; });
}

void EngineState::end_block(Block& block, Time end) {
  KernelRun& run = *block.run;
  SmState& sm = devices[static_cast<size_t>(run.launch.device)].sms[block.sm];
  --sm.blocks;
  sm.warps -= run.warps_per_block;
  sm.registers -= registers_of(run);
  sm.shared_bytes -= shared_of(run, profile.device);
  for (Warp* warp : block.warps) {
    end = std::max(end, warp->stores_done);
    for (auto& group : warp->groups) {
      if (group->state == GroupState::kParked) forget_watches(*group);
      if (options.ledger != nullptr) options.ledger->forget(*group);
    }
    warp->groups.clear();
    warp->frames.clear();
    warp->stack.reset();
    warp->copies.reset();
    warp->queued_at = kNever;
    warp->queue_ticket = 0;
    if (warp->local_base != 0) scratch.release(warp->local_base, run.local_lane_bytes * kLanes);
    free_warps.push_back(warp);
  }
  for (DelayedStore& store : stores) {
    if (store.block == &block) store.block = nullptr;
  }
  drop_copies(block);
  if (!run.failed) block_launches_dependents(block, end);
  free_shared(block);
  run.end = std::max(run.end, end);
  if (options.observer != nullptr) {
    options.observer->block_ended(run.id, block.linear, end);
  }
  auto place = std::find_if(run.blocks.begin(), run.blocks.end(),
                            [&](const auto& other) { return other.get() == &block; });
  std::swap(*place, run.blocks.back());
  run.blocks.pop_back();
  if (run.failed) return;
  if (run.next_block == run.num_blocks && run.blocks.empty()) end_run(run);
}

void EngineState::end_run(KernelRun& run) {
  auto found = runs.find(run.id);
  CB_CHECK(found != runs.end(), "a run ends once");
  if (run.param_base != 0) scratch.release(run.param_base, std::max<uint64_t>(run.param_bytes, 16));
  if (run.workspace != 0) {
    memory.free(run.launch.rank, run.workspace, Allocation::Kind::kModule);
  }
  auto& waiting = devices[static_cast<size_t>(run.launch.device)].waiting;
  waiting.erase(std::remove(waiting.begin(), waiting.end(), &run), waiting.end());
  Time end = std::max(run.end, now);
  if (run.on_end) {
    queue_callback(end, [callback = std::move(run.on_end), end, failed = run.failed] {
      callback(end, failed);
    });
  }
  ended_runs.push_back(std::move(found->second));
  runs.erase(found);
}

void EngineState::abandon(KernelRun& run) {
  run.failed = true;
  while (!run.blocks.empty()) end_block(*run.blocks.back(), now);
  run.next_block = run.num_blocks;
  int device = run.launch.device;
  end_run(run);
  dispatch(device);
}

}  // namespace cb::sim
