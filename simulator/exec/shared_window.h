#pragma once

// Addresses of shared memory. One of the window .shared::cta is an offset into the block's own
// memory, and means the same in the window .shared::cluster; mapa makes those of other blocks,
// which have the block's rank in the cluster, plus one, above kSharedRankShift. Generic addresses
// are those of the memory itself, whichever block it belongs to.

#include <cstdint>
#include <optional>

#include "simulator/exec/machine.h"

namespace cb::sim {

inline constexpr uint32_t kSharedRankShift = 24;

/// What a 32-bit address of .shared::cluster stands for.
struct SharedPlace {
  Block* block = nullptr;
  uint32_t offset = 0;   ///< may be past the end of the block's shared memory
  uint64_t address = 0;  ///< generic
};

/// Nullopt where the address names a block that the cluster does not have.
inline std::optional<SharedPlace> shared_place(Block& own, uint32_t address) {
  uint32_t offset = address & ((1u << kSharedRankShift) - 1);
  uint32_t rank = address >> kSharedRankShift;
  Block* block = &own;
  if (rank != 0) {
    if (own.cluster == nullptr) {
      if (rank != 1) return std::nullopt;
    } else {
      if (rank > own.cluster->blocks.size()) return std::nullopt;
      block = own.cluster->blocks[rank - 1];
      if (block == nullptr) return std::nullopt;
    }
  }
  return SharedPlace{block, offset, block->shared_base + offset};
}

/// The address that mapa gives for `offset` in the memory of the block of that rank.
inline uint32_t mapped_shared_address(uint32_t offset, uint32_t rank) {
  return (rank + 1) << kSharedRankShift | offset;
}

}  // namespace cb::sim
