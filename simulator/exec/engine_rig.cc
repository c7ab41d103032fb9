#include "simulator/exec/engine_rig.h"

#include <cstring>

#include "base/check.h"

namespace cb::sim {
namespace {

constexpr int kRanks = 4;
constexpr uint64_t kDeviceBytes = uint64_t{64} << 20;

}  // namespace

std::vector<EngineRig::Mode> EngineRig::all_modes() {
  std::vector<Mode> modes;
  for (bool timed : {true, false}) {
    for (bool schedule : {true, false}) {
      for (bool share : {true, false}) {
        modes.push_back(
            {.timed = timed, .decode = {.schedule_loads = schedule, .share_slots = share}});
      }
    }
  }
  return modes;
}

EngineRig::EngineRig(const std::string& ptx, const Mode& mode) : mode_(mode) {
  profile_ = value_or_throw(load_profile("h100x8"));
  std::string text = ".version 9.0\n.target sm_90a\n.address_size 64\n" + ptx;
  module_ = std::make_shared<const ptx::Module>(value_or_throw(ptx::parse(text)));
  memory_ =
      std::make_unique<AddressSpace>(kRanks, profile_.num_devices(), kDeviceBytes, MemoryQuota{});
  engine_ = std::make_unique<Engine>(*memory_, profile_,
                                     EngineOptions{.timed = mode.timed, .ledger = mode.ledger});
  for (int rank = 0; rank < kRanks; ++rank) {
    std::vector<uint64_t> addresses;
    for (const ptx::Variable& variable : module_->variables) {
      uint64_t base = 0;
      if (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst) {
        base = allocate(rank, variable.bytes);
        std::memcpy(reinterpret_cast<void*>(base), variable.initial.data(),
                    variable.initial.size());
      }
      addresses.push_back(base);
    }
    variables_.push_back(std::make_shared<const std::vector<uint64_t>>(std::move(addresses)));
  }
}

uint64_t EngineRig::allocate(int rank, uint64_t bytes) {
  const Allocation* allocation = memory_->allocate({.rank = rank,
                                                    .device = rank,
                                                    .bytes = bytes,
                                                    .kind = Allocation::Kind::kSymmetric,
                                                    .zeroed = true});
  CB_CHECK(allocation != nullptr, "test buffers fit");
  memory_->grant_everyone(allocation->base);
  std::memset(reinterpret_cast<void*>(allocation->base), 0, bytes);
  return allocation->base;
}

uint64_t EngineRig::launch(const std::string& kernel, int rank, const Shape& shape,
                           const std::vector<uint64_t>& parameters) {
  KernelLaunch launch;
  launch.program = value_or_throw(decode(module_, kernel, StallModel::of(profile_), mode_.decode));
  launch.variables = variables_[static_cast<size_t>(rank)];
  launch.rank = rank;
  launch.device = rank;
  launch.grid[0] = shape.blocks;
  launch.block[0] = shape.threads;
  launch.dynamic_shared_bytes = shape.dynamic_shared_bytes;
  launch.static_shared_bytes = launch.program->static_shared_bytes;
  launch.registers = shape.registers;
  launch.cooperative = shape.cooperative;
  launch.cluster[0] = shape.cluster;
  launch.explicit_cluster = shape.cluster > 1;
  launch.has_dependencies = shape.has_dependencies;
  launch.on_launch_dependents = shape.on_launch_dependents;
  launch.parameters.resize(parameters.size() * sizeof(uint64_t));
  std::memcpy(launch.parameters.data(), parameters.data(), launch.parameters.size());
  launch.name = kernel;
  ++running_;
  return engine_->start(std::move(launch), [this](Time end, bool) {
    --running_;
    last_end_ = std::max(last_end_, end);
  });
}

void EngineRig::run(Time limit) { engine_->run(limit); }

}  // namespace cb::sim
