#pragma once

#include <cstdint>
#include <vector>

#include "simulator/decode/ir.h"

namespace cb::sim {

/// Operations [first, end) that are executed one after the other.
struct BasicBlock {
  uint32_t first = 0;
  uint32_t end = 0;
  std::vector<uint32_t> successors;
};

struct FlowGraph {
  std::vector<BasicBlock> blocks;
  std::vector<uint32_t> block_of;  ///< by instruction; blocks keep their places in scheduling
};

FlowGraph find_blocks(const FunctionIr& ir);

/// One bit per register.
class RegisterSet {
 public:
  explicit RegisterSet(size_t num_registers) : words_((num_registers + 63) / 64) {}
  bool has(uint32_t reg) const { return (words_[reg / 64] >> (reg % 64) & 1) != 0; }
  void add(uint32_t reg) { words_[reg / 64] |= uint64_t{1} << (reg % 64); }
  void remove(uint32_t reg) { words_[reg / 64] &= ~(uint64_t{1} << (reg % 64)); }
  /// this |= (other & ~without). True when that added something.
  bool add_all(const RegisterSet& other, const RegisterSet* without = nullptr);
  /// Calls `visit(register)` in order.
  template <typename Visit>
  void for_each(Visit&& visit) const {
    for (size_t word = 0; word < words_.size(); ++word) {
      for (uint64_t left = words_[word]; left != 0; left &= left - 1) {
        visit(static_cast<uint32_t>(word * 64 + static_cast<size_t>(__builtin_ctzll(left))));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

struct Liveness {
  std::vector<RegisterSet> live_in;  ///< by block
  std::vector<RegisterSet> live_out;
};

/// A definition under a guard does not end the life of the earlier value: lanes without the guard
/// keep it. Error(kConfig) for functions of a size that would take too long.
Result<Liveness> find_liveness(const FunctionIr& ir, const FlowGraph& graph);

}  // namespace cb::sim
