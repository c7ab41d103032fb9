// Where variables and parameters lie.

#include "simulator/decode/memory_layout.h"

namespace cb::sim {

uint32_t align_of(const ptx::Variable& variable) {
  uint32_t natural = std::max(1u, ptx::bytes_of(variable.type));
  return std::max(variable.align, natural);
}

uint64_t SharedLayout::offset_of(const ptx::Function* function, uint32_t index,
                                 const ptx::Variable& variable) {
  auto [place, is_new] = offsets_.try_emplace({function, index}, 0);
  if (is_new) {
    bytes_ = round_up(bytes_, align_of(variable));
    place->second = bytes_;
    bytes_ += variable.bytes;
  }
  return place->second;
}

std::pair<std::vector<uint32_t>, uint32_t> parameter_layout(
    const std::vector<ptx::Variable>& parameters) {
  std::vector<uint32_t> offsets;
  uint64_t next = 0;
  for (const ptx::Variable& parameter : parameters) {
    next = round_up(next, align_of(parameter));
    offsets.push_back(static_cast<uint32_t>(next));
    next += parameter.bytes;
  }
  return {std::move(offsets), static_cast<uint32_t>(next)};
}

}  // namespace cb::sim
