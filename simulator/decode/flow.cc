#include "simulator/decode/flow.h"

#include <fmt/format.h>

#include <algorithm>

namespace cb::sim {
namespace {

/// Bits of all sets together; a real kernel needs a thousandth of it.
constexpr uint64_t kMaxLivenessBits = uint64_t{1} << 31;

std::vector<uint32_t> targets_of(const FunctionIr& ir, const IrOp& op) {
  std::vector<uint32_t> targets;
  if (op.branch_target >= 0) targets.push_back(static_cast<uint32_t>(op.branch_target));
  if (op.branch_table >= 0) {
    const auto& table = ir.function->branch_tables[static_cast<size_t>(op.branch_table)];
    targets.insert(targets.end(), table.begin(), table.end());
  }
  return targets;
}

}  // namespace

FlowGraph find_blocks(const FunctionIr& ir) {
  const auto size = static_cast<uint32_t>(ir.ops.size());
  std::vector<bool> starts(size + 1, false);
  starts[0] = true;
  for (uint32_t i = 0; i < size; ++i) {
    if (!ir.ops[i].ends_block) continue;
    starts[i + 1] = true;
    for (uint32_t target : targets_of(ir, ir.ops[i])) starts[target] = true;
  }
  FlowGraph graph;
  graph.block_of.resize(size);
  for (uint32_t i = 0; i < size; ++i) {
    if (starts[i]) graph.blocks.push_back({.first = i});
    graph.blocks.back().end = i + 1;
    graph.block_of[i] = static_cast<uint32_t>(graph.blocks.size() - 1);
  }
  for (uint32_t b = 0; b < graph.blocks.size(); ++b) {
    BasicBlock& block = graph.blocks[b];
    const IrOp& last = ir.ops[block.end - 1];
    if (last.falls_through && b + 1 < graph.blocks.size()) block.successors.push_back(b + 1);
    for (uint32_t target : targets_of(ir, last)) {
      block.successors.push_back(graph.block_of[target]);
    }
    std::sort(block.successors.begin(), block.successors.end());
    block.successors.erase(std::unique(block.successors.begin(), block.successors.end()),
                           block.successors.end());
  }
  return graph;
}

bool RegisterSet::add_all(const RegisterSet& other, const RegisterSet* without) {
  bool grew = false;
  for (size_t word = 0; word < words_.size(); ++word) {
    uint64_t bits = other.words_[word];
    if (without != nullptr) bits &= ~without->words_[word];
    grew |= (bits & ~words_[word]) != 0;
    words_[word] |= bits;
  }
  return grew;
}

Result<Liveness> find_liveness(const FunctionIr& ir, const FlowGraph& graph) {
  size_t num_registers = ir.function->registers.size();
  size_t num_blocks = graph.blocks.size();
  if (uint64_t{num_registers} * num_blocks > kMaxLivenessBits) {
    return failure(ErrorCode::kConfig,
                   fmt::format("{}: {} registers and {} blocks are more than the simulator takes",
                               ir.function->name, num_registers, num_blocks));
  }
  Liveness live{.live_in = std::vector<RegisterSet>(num_blocks, RegisterSet(num_registers)),
                .live_out = std::vector<RegisterSet>(num_blocks, RegisterSet(num_registers))};
  std::vector<RegisterSet> killed(num_blocks, RegisterSet(num_registers));
  std::vector<std::vector<uint32_t>> predecessors(num_blocks);
  for (uint32_t b = 0; b < num_blocks; ++b) {
    const BasicBlock& block = graph.blocks[b];
    for (uint32_t successor : block.successors) predecessors[successor].push_back(b);
    for (uint32_t i = block.first; i < block.end; ++i) {
      const IrOp& op = ir.ops[i];
      for_each_register(op, [&](uint32_t reg, bool is_destination) {
        if (!is_destination && !killed[b].has(reg)) live.live_in[b].add(reg);
      });
      if (op.guard >= 0) continue;
      for_each_register(op, [&](uint32_t reg, bool is_destination) {
        if (is_destination) killed[b].add(reg);
      });
    }
  }
  std::vector<uint32_t> work(num_blocks);
  std::vector<bool> queued(num_blocks, true);
  for (uint32_t b = 0; b < num_blocks; ++b) work[b] = b;
  while (!work.empty()) {
    uint32_t b = work.back();
    work.pop_back();
    queued[b] = false;
    for (uint32_t successor : graph.blocks[b].successors) {
      live.live_out[b].add_all(live.live_in[successor]);
    }
    if (!live.live_in[b].add_all(live.live_out[b], &killed[b])) continue;
    for (uint32_t predecessor : predecessors[b]) {
      if (queued[predecessor]) continue;
      queued[predecessor] = true;
      work.push_back(predecessor);
    }
  }
  return live;
}

}  // namespace cb::sim
