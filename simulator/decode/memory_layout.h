#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "simulator/ptx/module.h"

namespace cb::sim {

inline uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

/// The alignment of a variable: what is declared, at least that of its type.
uint32_t align_of(const ptx::Variable& variable);

/// Offset of each parameter of a kernel, and the bytes of all.
std::pair<std::vector<uint32_t>, uint32_t> parameter_layout(
    const std::vector<ptx::Variable>& parameters);

/// Where shared variables lie in a block's shared memory: those that the kernel reaches, in the
/// order in which they are met.
class SharedLayout {
 public:
  /// Offset of a variable of a function (or, with nullptr, of the module).
  uint64_t offset_of(const ptx::Function* function, uint32_t index, const ptx::Variable& variable);

  uint64_t bytes() const { return bytes_; }
  uint32_t dynamic_align() const { return dynamic_align_; }
  void need_dynamic(uint32_t align) { dynamic_align_ = std::max(dynamic_align_, align); }

 private:
  std::map<std::pair<const ptx::Function*, uint32_t>, uint64_t> offsets_;
  uint64_t bytes_ = 0;
  uint32_t dynamic_align_ = 16;
};

}  // namespace cb::sim
