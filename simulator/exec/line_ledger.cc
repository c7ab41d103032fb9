#include "simulator/exec/line_ledger.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "simulator/exec/engine_state.h"

namespace cb::sim {
namespace {

constexpr uint64_t kSectorBytes = 32;

/// What counts as an operation's own time, unless its access says it: see own_stall().
Stall class_of(const ptx::Instruction& instruction) {
  std::string_view name = instruction.opcode;
  if (name == "bar" || name == "barrier" || name == "shfl" || name == "vote" || name == "redux") {
    return Stall::kBarrier;
  }
  if (name == "mbarrier") return Stall::kMbarrier;
  if (name == "cp") return Stall::kCopyEngine;
  if (name == "fence" || name == "membar") return Stall::kFence;
  if (name == "mma" || name == "wmma" || name == "wgmma") return Stall::kTensor;
  if (name == "nanosleep") return Stall::kSpin;
  if (name == "griddepcontrol") return Stall::kLaunch;
  return Stall::kIssue;
}

struct LineCost {
  uint32_t ptx_line = 0;
  OpCost cost;
  std::map<std::pair<int, int>, uint64_t> links;

  Time total() const { return std::accumulate(cost.time.begin(), cost.time.end(), Time{0}); }
};

using Place = std::tuple<std::string, uint32_t, uint32_t>;  ///< file, line, PTX line

void add(const OpCost& from, OpCost& to) {
  for (size_t i = 0; i < kNumStalls; ++i) to.time[i] += from.time[i];
  to.instructions += from.instructions;
  to.lanes += from.lanes;
  to.device_bytes += from.device_bytes;
  to.host_bytes += from.host_bytes;
  to.shared_bytes += from.shared_bytes;
}

Json line_json(const Place& place, const LineCost& line) {
  Json json;
  json["file"] = std::get<0>(place);
  json["line"] = std::get<1>(place);
  if (std::get<0>(place).empty()) json["ptx_line"] = std::get<2>(place);
  json["time_ps"] = line.total();
  json["stalls"] = Json::object();
  for (size_t i = 0; i < kNumStalls; ++i) {
    if (line.cost.time[i] > 0) json["stalls"][to_string(static_cast<Stall>(i))] = line.cost.time[i];
  }
  json["instructions"] = line.cost.instructions;
  json["lane_instructions"] = line.cost.lanes;
  Json links = Json::array();
  for (const auto& [way, bytes] : line.links) {
    links.push_back({{"from", way.first}, {"to", way.second}, {"bytes", bytes}});
  }
  json["bytes"] = {{"device", line.cost.device_bytes},
                   {"host", line.cost.host_bytes},
                   {"shared", line.cost.shared_bytes},
                   {"links", std::move(links)}};
  return json;
}

std::map<Place, LineCost> lines_of(const KernelCosts& kernel) {
  std::map<Place, LineCost> lines;
  for (uint32_t f = 0; f < kernel.functions.size(); ++f) {
    const FunctionCode& code = *kernel.program->functions[f];
    for (uint32_t pc = 0; pc < kernel.functions[f].size(); ++pc) {
      const OpCost& cost = kernel.functions[f][pc];
      if (cost.instructions == 0 && cost.time == OpCost{}.time) continue;
      CodePlace place;
      uint32_t ptx_line = 0;
      uint32_t index = pc < code.info.size() ? code.info[pc].instruction : UINT32_MAX;
      if (index < code.source->body.size()) {
        const ptx::Instruction& instruction = code.source->body[index];
        set_source(place, *kernel.program->module, instruction.location);
        ptx_line = instruction.text_line;
      }
      bool known = !place.file.empty();
      LineCost& line = lines[{place.file, known ? place.line : 0, known ? 0 : ptx_line}];
      add(cost, line.cost);
      auto first = kernel.link_bytes.lower_bound({f, pc, INT32_MIN, INT32_MIN});
      for (; first != kernel.link_bytes.end(); ++first) {
        const auto& [function, op, from, to] = first->first;
        if (function != f || op != pc) break;
        line.links[{from, to}] += first->second;
      }
    }
  }
  return lines;
}

}  // namespace

const char* to_string(Stall stall) {
  static constexpr const char* kNames[kNumStalls] = {
      "issue",    "memory_local", "memory_remote", "barrier", "spin",
      "mbarrier", "copy_engine",  "fence",         "tensor",  "launch"};
  return kNames[static_cast<size_t>(stall)];
}

KernelCosts* LineLedger::open(const KernelLaunch& launch) {
  for (const auto& kernel : kernels_) {
    if (kernel->program == launch.program && kernel->name == launch.name) {
      ++kernel->launches;
      return kernel.get();
    }
  }
  auto kernel = std::make_unique<KernelCosts>();
  kernel->program = launch.program;
  kernel->name = launch.name;
  kernel->launches = 1;
  for (const auto& code : launch.program->functions) {
    kernel->number[code.get()] = static_cast<uint32_t>(kernel->functions.size());
    kernel->functions.emplace_back(code->ops.size());
    auto& own = kernel->own.emplace_back(code->ops.size(), Stall::kIssue);
    for (size_t pc = 0; pc < std::min(code->ops.size(), code->info.size()); ++pc) {
      uint32_t index = code->info[pc].instruction;
      if (index < code->source->body.size()) own[pc] = class_of(code->source->body[index]);
    }
  }
  kernels_.push_back(std::move(kernel));
  return kernels_.back().get();
}

LineLedger::GroupClock& LineLedger::clock_of(const Group& group) {
  auto [place, is_new] = clocks_.try_emplace(&group);
  if (is_new) place->second.until = group.now;
  return place->second;
}

void LineLedger::set_source(const Frame& frame, uint16_t slot, Stall stall) {
  std::vector<Stall>& slots = sources_[&frame];
  if (slots.size() < frame.code->num_slots) slots.resize(frame.code->num_slots, Stall::kIssue);
  if (slot < slots.size()) slots[slot] = stall;
}

Stall LineLedger::source_of(const Frame& frame, uint16_t slot) const {
  auto found = sources_.find(&frame);
  bool known = found != sources_.end() && slot < found->second.size();
  return known ? found->second[slot] : Stall::kIssue;
}

void LineLedger::add_bytes(KernelCosts& costs, const FunctionCode& code, uint32_t pc, int device,
                           const MemoryAccess& access, uint64_t bytes) {
  auto found = costs.number.find(&code);
  if (found == costs.number.end() || pc >= code.ops.size()) return;
  OpCost& cost = costs.functions[found->second][pc];
  switch (access.target) {
    case MemoryAccess::Target::kShared:
      cost.shared_bytes += access.bytes;
      return;
    case MemoryAccess::Target::kPinned:
      cost.host_bytes += bytes;
      return;
    case MemoryAccess::Target::kLocal:
    case MemoryAccess::Target::kParam:
      return;
    case MemoryAccess::Target::kDevice:
    case MemoryAccess::Target::kMulticast:
      break;
  }
  if (access.target == MemoryAccess::Target::kDevice && access.device == device) {
    cost.device_bytes += bytes;
    return;
  }
  // Multimem operations go through the switch, which is not a device: -1.
  int peer = access.target == MemoryAccess::Target::kMulticast ? -1 : int{access.device};
  bool in = access.kind == MemoryAccess::Kind::kLoad;
  costs.link_bytes[{found->second, pc, in ? peer : device, in ? device : peer}] += bytes;
}

Json LineLedger::to_json() const {
  Json json;
  json["time_ps"] = 0;
  json["kernels"] = Json::array();
  Time all = 0;
  for (const auto& kernel : kernels_) {
    std::map<Place, LineCost> lines = lines_of(*kernel);
    std::vector<const std::pair<const Place, LineCost>*> sorted;
    for (const auto& line : lines) sorted.push_back(&line);
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto* one, const auto* other) {
      return one->second.total() > other->second.total();
    });
    Json entry;
    entry["name"] = kernel->name;
    entry["launches"] = kernel->launches;
    Time total = 0;
    entry["lines"] = Json::array();
    for (const auto* line : sorted) {
      total += line->second.total();
      entry["lines"].push_back(line_json(line->first, line->second));
    }
    entry["time_ps"] = total;
    all += total;
    json["kernels"].push_back(std::move(entry));
  }
  json["time_ps"] = all;
  return json;
}

}  // namespace cb::sim
