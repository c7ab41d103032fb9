#include "simulator/decode/schedule.h"

#include <functional>
#include <queue>
#include <unordered_map>

namespace cb::sim {
namespace {

/// Loads that may be ahead of the oldest operation that still waits: registers are not endless.
constexpr size_t kMaxLoadsAhead = 32;

bool is_weak_load(const IrOp& op) {
  return (op.flags & kOpLoad) != 0 &&
         (op.flags & (kOpOrdered | kOpSideEffect | kOpBarrier | kOpAcquire | kOpRelease)) == 0;
}

/// Whether the operation keeps its place among memory operations.
bool orders_memory(const IrOp& op) { return (op.flags & kOpPure) == 0 && !is_weak_load(op); }

/// One block: what each operation must wait for.
class BlockSchedule {
 public:
  BlockSchedule(std::vector<IrOp>& ops, uint32_t first, uint32_t end)
      : ops_(ops), first_(first), size_(end - first), successors_(size_), waits_for_(size_) {}

  void run() {
    find_dependences();
    find_wanted();
    emit();
  }

 private:
  /// The registers are keys; the carry flag is one more.
  static constexpr int64_t kCarry = -1;

  struct Uses {
    int64_t last_write = -1;
    std::vector<uint32_t> reads_since;
  };

  void depend(uint32_t on, uint32_t op) {
    if (on == op) return;
    successors_[on].push_back(op);
    ++waits_for_[op];
  }

  void read(int64_t key, uint32_t op) {
    Uses& uses = uses_[key];
    if (uses.last_write >= 0) depend(static_cast<uint32_t>(uses.last_write), op);
    uses.reads_since.push_back(op);
  }

  void write(int64_t key, uint32_t op) {
    Uses& uses = uses_[key];
    if (uses.last_write >= 0) depend(static_cast<uint32_t>(uses.last_write), op);
    for (uint32_t reader : uses.reads_since) depend(reader, op);
    uses.reads_since.clear();
    uses.last_write = op;
  }

  void find_dependences() {
    int64_t last_order = -1;
    std::vector<uint32_t> loads;
    for (uint32_t i = 0; i < size_; ++i) {
      const IrOp& op = ops_[first_ + i];
      for_each_register(op, [&](uint32_t reg, bool is_destination) {
        if (!is_destination) read(reg, i);
      });
      if (op.reads_carry) read(kCarry, i);
      for_each_register(op, [&](uint32_t reg, bool is_destination) {
        if (is_destination) write(reg, i);
      });
      if (op.writes_carry) write(kCarry, i);
      if (orders_memory(op)) {
        if (last_order >= 0) depend(static_cast<uint32_t>(last_order), i);
        for (uint32_t load : loads) depend(load, i);
        loads.clear();
        last_order = i;
      } else if (is_weak_load(op) && !op.is_free_load) {
        if (last_order >= 0) depend(static_cast<uint32_t>(last_order), i);
        loads.push_back(i);
      }
    }
  }

  /// Weak loads, and the arithmetic that they wait for.
  void find_wanted() {
    wanted_.assign(size_, false);
    for (uint32_t i = size_; i-- > 0;) {
      const IrOp& op = ops_[first_ + i];
      if (is_weak_load(op)) wanted_[i] = true;
      if ((op.flags & kOpPure) == 0) continue;
      for (uint32_t successor : successors_[i]) wanted_[i] = wanted_[i] || wanted_[successor];
    }
  }

  void emit() {
    using Queue = std::priority_queue<uint32_t, std::vector<uint32_t>, std::greater<>>;
    Queue ready_wanted;
    Queue ready_others;
    Queue ahead;  // loads that were emitted before older operations
    std::vector<bool> emitted(size_, false);
    uint32_t oldest = 0;
    auto make_ready = [&](uint32_t i) { (wanted_[i] ? ready_wanted : ready_others).push(i); };
    for (uint32_t i = 0; i < size_; ++i) {
      if (waits_for_[i] == 0) make_ready(i);
    }
    std::vector<IrOp> result;
    result.reserve(size_);
    while (result.size() < size_) {
      bool hoist = !ready_wanted.empty() && (ahead.size() < kMaxLoadsAhead || ready_others.empty());
      Queue& queue = hoist ? ready_wanted : ready_others;
      uint32_t i = queue.top();
      queue.pop();
      emitted[i] = true;
      if ((ops_[first_ + i].flags & kOpLoad) != 0) ahead.push(i);
      while (oldest < size_ && emitted[oldest]) ++oldest;
      while (!ahead.empty() && ahead.top() < oldest) ahead.pop();
      for (uint32_t successor : successors_[i]) {
        if (--waits_for_[successor] == 0) make_ready(successor);
      }
      result.push_back(std::move(ops_[first_ + i]));
    }
    for (uint32_t i = 0; i < size_; ++i) ops_[first_ + i] = std::move(result[i]);
  }

  std::vector<IrOp>& ops_;
  uint32_t first_;
  uint32_t size_;
  std::vector<std::vector<uint32_t>> successors_;
  std::vector<uint32_t> waits_for_;
  std::unordered_map<int64_t, Uses> uses_;
  std::vector<bool> wanted_;
};

}  // namespace

void schedule_loads(FunctionIr& ir, const FlowGraph& graph) {
  for (const BasicBlock& block : graph.blocks) {
    uint32_t end = block.end;
    if (ir.ops[end - 1].ends_block) --end;
    uint32_t loads = 0;
    for (uint32_t i = block.first; i < end; ++i) loads += is_weak_load(ir.ops[i]) ? 1 : 0;
    if (loads > 0 && end - block.first > 2) BlockSchedule(ir.ops, block.first, end).run();
  }
}

}  // namespace cb::sim
