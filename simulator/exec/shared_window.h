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

inline uint32_t cluster_blocks(const Block& own) {
  return own.cluster == nullptr ? 1 : static_cast<uint32_t>(own.cluster->blocks.size());
}

constexpr uint32_t shared_offset(uint64_t address) {
  return static_cast<uint32_t>(address & ((uint64_t{1} << kSharedRankShift) - 1));
}

/// The rank of the block that an address of .shared::cluster names; nullopt where the cluster has
/// no such block. It may have ended.
inline std::optional<uint32_t> rank_of_window(const Block& own, uint64_t address) {
  uint64_t rank = address >> kSharedRankShift;
  if (rank == 0) return own.cluster_rank;
  if (rank > cluster_blocks(own)) return std::nullopt;
  return static_cast<uint32_t>(rank - 1);
}

/// Nullopt where the address names a block that the cluster does not have, or that has ended.
inline std::optional<SharedPlace> shared_place(Block& own, uint32_t address) {
  std::optional<uint32_t> rank = rank_of_window(own, address);
  if (!rank) return std::nullopt;
  Block* block = own.cluster == nullptr ? &own : own.cluster->blocks[*rank];
  if (block == nullptr) return std::nullopt;
  uint32_t offset = shared_offset(address);
  return SharedPlace{block, offset, block->shared_base + offset};
}

/// The address that mapa gives for `offset` in the memory of the block of that rank.
inline uint32_t mapped_shared_address(uint32_t offset, uint32_t rank) {
  return (rank + 1) << kSharedRankShift | offset;
}

/// Where the shared memory of the block of that rank is, or was.
inline uint64_t shared_base_of(const Block& own, uint32_t rank) {
  return own.cluster == nullptr ? own.shared_base : own.cluster->shared_bases[rank];
}

/// The rank of the block of the cluster whose shared memory has the generic address.
inline std::optional<uint32_t> rank_of_shared(const Block& own, uint64_t address) {
  if (address - own.shared_base < own.shared_bytes) return own.cluster_rank;
  for (uint32_t rank = 0; own.cluster != nullptr && rank < cluster_blocks(own); ++rank) {
    if (address - own.cluster->shared_bases[rank] < own.cluster->shared_bytes) return rank;
  }
  return std::nullopt;
}

}  // namespace cb::sim
