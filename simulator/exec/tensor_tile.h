#pragma once

// Which bytes of a tensor and of shared memory a box stands for: the geometry of tensor maps, apart
// from registers, memory and time. Elements of a box lie in shared memory one after the other,
// dimension 0 first, and a swizzle then exchanges chunks by the bits of their address.

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/protocol/tensor_map.h"

namespace cb::sim {

/// Where a box starts.
struct TilePosition {
  std::array<int32_t, TensorMap::kMaxRank> at = {};
  /// kIm2col: how far behind the pixels that are counted lie those that are read, by dimension
  /// from 1.
  std::array<uint16_t, TensorMap::kMaxRank - 2> offsets = {};
};

/// Bytes that lie together on both sides.
struct TilePiece {
  uint64_t global = 0;  ///< address; 0: outside the tensor
  uint32_t shared = 0;  ///< address in the window of shared memory
  uint32_t bytes = 0;
};

/// Bytes of all elements of a box: what a copy of it counts on an mbarrier. The map is valid.
uint64_t tile_bytes(const TensorMap& map);
/// The room of a box in shared memory: a swizzle may fill its last span anywhere.
uint64_t tile_room(const TensorMap& map);

/// What is wrong with the position of a box; nullopt: nothing. A tiled box may lie anywhere, but
/// the first pixel of an im2col box must be in its bounding box.
std::optional<std::string> problem_of_position(const TensorMap& map, const TilePosition& position);

/// The pieces of a box at `shared`, in the order of its elements. The map and the position are
/// valid, and tile_bytes() is known to be small.
std::vector<TilePiece> tile_pieces(const TensorMap& map, const TilePosition& position,
                                   uint32_t shared);

/// Where a swizzle puts the byte that would be at `address`.
uint32_t swizzled(TensorSwizzle swizzle, uint32_t address);

/// The eight bytes that repeat outside the tensor.
std::array<std::byte, 8> tile_fill(const TensorMap& map);

}  // namespace cb::sim
