#include "simulator/decode/slots.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace cb::sim {
namespace {

constexpr uint32_t kMaxSlots = 0xfff0;
constexpr uint32_t kLineBytes = 64;
constexpr unsigned kNumWidths = 6;  // 1, 2, 4, 8, 16 bytes, and predicates

unsigned width_class(ptx::Type type) {
  switch (ptx::bytes_of(type)) {
    case 1:
      return 0;
    case 2:
      return 1;
    case 4:
      return 2;
    case 8:
      return 3;
    case 16:
      return 4;
    default:
      return 5;
  }
}

/// Positions of operations between which a register must keep its slot.
struct Interval {
  uint32_t first = ~0u;
  uint32_t last = 0;
  uint32_t reg = 0;

  void cover(uint32_t position) {
    first = std::min(first, position);
    last = std::max(last, position);
  }
};

std::vector<Interval> find_intervals(const FunctionIr& ir, const FlowGraph& graph,
                                     const Liveness& live) {
  std::vector<Interval> intervals(ir.function->registers.size());
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    const BasicBlock& block = graph.blocks[b];
    live.live_in[b].for_each([&](uint32_t reg) { intervals[reg].cover(block.first); });
    live.live_out[b].for_each([&](uint32_t reg) { intervals[reg].cover(block.end); });
    for (uint32_t i = block.first; i < block.end; ++i) {
      for_each_register(ir.ops[i], [&](uint32_t reg, bool) { intervals[reg].cover(i); });
    }
  }
  std::vector<Interval> used;
  for (uint32_t reg = 0; reg < intervals.size(); ++reg) {
    if (intervals[reg].first == ~0u) continue;
    intervals[reg].reg = reg;
    used.push_back(intervals[reg]);
  }
  std::sort(used.begin(), used.end(), [](const Interval& a, const Interval& b) {
    return std::pair(a.first, a.reg) < std::pair(b.first, b.reg);
  });
  return used;
}

class Assigner {
 public:
  explicit Assigner(SlotMap& map) : map_(map) {}

  Slot fresh(unsigned width) {
    if (width == kNumWidths - 1) {
      return {static_cast<uint16_t>(map_.num_predicates++), 0};
    }
    uint32_t bytes = 32u << width;
    Slot slot{static_cast<uint16_t>(map_.num_slots++), static_cast<uint16_t>(map_.vector_lines)};
    map_.vector_lines += (bytes + kLineBytes - 1) / kLineBytes;
    return slot;
  }

  bool is_full() const {
    return map_.num_slots >= kMaxSlots || map_.vector_lines >= kMaxSlots ||
           map_.num_predicates >= 0x7ff0;
  }

 private:
  SlotMap& map_;
};

}  // namespace

Result<SlotMap> assign_slots(const FunctionIr& ir, const FlowGraph& graph, const Liveness& live,
                             bool share) {
  SlotMap map;
  map.num_predicates = kFirstPredicate;
  map.registers.resize(ir.function->registers.size(), Slot{kNoSlot, 0});
  Assigner assigner(map);
  struct Busy {
    uint32_t last;
    Slot slot;
    bool operator<(const Busy& other) const { return last > other.last; }
  };
  std::array<std::vector<Busy>, kNumWidths> busy;  // heaps, the first to end on top
  std::array<std::vector<Slot>, kNumWidths> free;
  for (const Interval& interval : find_intervals(ir, graph, live)) {
    unsigned width = width_class(ir.function->registers[interval.reg].type);
    auto& heap = busy[width];
    while (share && !heap.empty() && heap.front().last < interval.first) {
      free[width].push_back(heap.front().slot);
      std::pop_heap(heap.begin(), heap.end());
      heap.pop_back();
    }
    Slot slot;
    if (free[width].empty()) {
      if (assigner.is_full()) {
        return failure(ErrorCode::kConfig,
                       fmt::format("{}: more registers live at the same time than the simulator "
                                   "can hold",
                                   ir.function->name));
      }
      slot = assigner.fresh(width);
    } else {
      slot = free[width].back();
      free[width].pop_back();
    }
    map.registers[interval.reg] = slot;
    heap.push_back({interval.last, slot});
    std::push_heap(heap.begin(), heap.end());
  }
  for (const Preset& preset : ir.presets) {
    if (assigner.is_full()) {
      return failure(
          ErrorCode::kConfig,
          fmt::format("{}: more constants than the simulator can hold", ir.function->name));
    }
    if (preset.kind == Preset::Kind::kSpecial) {
      map.presets.push_back(assigner.fresh(width_class(ptx::Type::kU32)));
    } else {
      map.presets.push_back({static_cast<uint16_t>(map.num_slots++), 0});
    }
  }
  return map;
}

}  // namespace cb::sim
