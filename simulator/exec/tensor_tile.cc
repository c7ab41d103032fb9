#include "simulator/exec/tensor_tile.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace cb::sim {
namespace {

constexpr uint32_t kSwizzleUnit = 8;  ///< the smallest run that no swizzle tears apart

int64_t size_of(const TensorMap& map, uint32_t dimension) {
  return int64_t{map.last[dimension]} + 1;
}

uint32_t steps_of(const TensorMap& map, uint32_t dimension) {
  uint32_t stride = dimension == 0 ? 1 : map.element_strides[dimension];
  return (map.box[dimension] + stride - 1) / stride;
}

/// First and last place of the bounding box of an im2col map.
struct Bounds {
  int64_t first;
  int64_t last;
};
Bounds bounds_of(const TensorMap& map, uint32_t dimension) {
  return {map.box_lower[dimension - 1], size_of(map, dimension) - 1 + map.box_upper[dimension - 1]};
}

/// Collects the pieces of a box, row by row.
class TileWriter {
 public:
  TileWriter(const TensorMap& map, uint32_t shared)
      : map_(map), element_bytes_(bytes_of(map.type)), next_(shared) {}

  /// The elements [first, first + count) of dimension 0 at the places `at` of the others.
  void add_row(int64_t first, uint32_t count, const int64_t* at) {
    int64_t size = size_of(map_, 0);
    bool inside = true;
    uint64_t base = map_.address;
    for (uint32_t i = 1; i < map_.rank; ++i) {
      inside &= at[i] >= 0 && at[i] < size_of(map_, i);
      base += static_cast<uint64_t>(at[i]) * map_.strides[i - 1];
    }
    int64_t last = first + count;
    int64_t begin = inside ? std::clamp<int64_t>(0, first, last) : first;
    int64_t end = inside ? std::clamp<int64_t>(size, begin, last) : first;
    add_run(0, begin - first);
    add_run(base + static_cast<uint64_t>(begin) * element_bytes_, end - begin);
    add_run(0, last - end);
  }

  std::vector<TilePiece> take() { return std::move(pieces_); }

 private:
  void add_run(uint64_t global, int64_t elements) {
    auto left = static_cast<uint32_t>(elements) * element_bytes_;
    while (left > 0) {
      uint32_t bytes = left;
      if (map_.swizzle != TensorSwizzle::kNone) {
        bytes = std::min(left, kSwizzleUnit - next_ % kSwizzleUnit);
      }
      add_piece({global, swizzled(map_.swizzle, next_), bytes});
      if (global != 0) global += bytes;
      next_ += bytes;
      left -= bytes;
    }
  }

  void add_piece(const TilePiece& piece) {
    if (!pieces_.empty()) {
      TilePiece& last = pieces_.back();
      bool follows =
          last.global == 0 ? piece.global == 0 : piece.global == last.global + last.bytes;
      if (follows && piece.shared == last.shared + last.bytes) {
        last.bytes += piece.bytes;
        return;
      }
    }
    pieces_.push_back(piece);
  }

  const TensorMap& map_;
  const uint32_t element_bytes_;
  uint32_t next_;
  std::vector<TilePiece> pieces_;
};

void add_tiled(const TensorMap& map, const TilePosition& position, TileWriter& writer) {
  uint32_t index[TensorMap::kMaxRank] = {};
  int64_t at[TensorMap::kMaxRank] = {};
  for (uint32_t i = 0; i < map.rank; ++i) at[i] = position.at[i];
  for (;;) {
    writer.add_row(at[0], map.box[0], at);
    uint32_t i = 1;
    while (i < map.rank) {
      at[i] += map.element_strides[i];
      if (++index[i] < steps_of(map, i)) break;
      index[i] = 0;
      at[i] = position.at[i];
      ++i;
    }
    if (i >= map.rank) return;
  }
}

void add_pixels(const TensorMap& map, const TilePosition& position, TileWriter& writer) {
  int64_t counted[TensorMap::kMaxRank] = {};
  int64_t read[TensorMap::kMaxRank] = {};
  uint32_t batch = map.rank - 1u;
  for (uint32_t i = 0; i < map.rank; ++i) counted[i] = position.at[i];
  for (uint32_t pixel = 0; pixel < map.box[1]; ++pixel) {
    for (uint32_t i = 1; i < map.rank; ++i) {
      read[i] = counted[i] + (i < batch ? position.offsets[i - 1] : 0);
    }
    writer.add_row(counted[0], map.box[0], read);
    for (uint32_t i = 1; i < map.rank; ++i) {
      counted[i] += map.element_strides[i];
      if (i == batch) break;
      Bounds bounds = bounds_of(map, i);
      if (counted[i] <= bounds.last) break;
      counted[i] = bounds.first;
    }
  }
}

}  // namespace

uint64_t tile_bytes(const TensorMap& map) {
  uint64_t elements = map.box[0];
  if (map.mode == TensorMode::kIm2col) {
    elements *= map.box[1];
  } else {
    for (uint32_t i = 1; i < map.rank; ++i) elements *= steps_of(map, i);
  }
  return elements * bytes_of(map.type);
}

uint64_t tile_room(const TensorMap& map) {
  uint64_t span = std::max<uint64_t>(span_of(map.swizzle), 1);
  return (tile_bytes(map) + span - 1) / span * span;
}

std::optional<std::string> problem_of_position(const TensorMap& map, const TilePosition& position) {
  if (map.mode == TensorMode::kTiled) return std::nullopt;
  for (uint32_t i = 1; i + 1 < map.rank; ++i) {
    Bounds bounds = bounds_of(map, i);
    if (position.at[i] < bounds.first || position.at[i] > bounds.last) {
      return fmt::format("coordinate {} is {}, outside the bounding box, {} to {}", i,
                         position.at[i], bounds.first, bounds.last);
    }
  }
  return std::nullopt;
}

std::vector<TilePiece> tile_pieces(const TensorMap& map, const TilePosition& position,
                                   uint32_t shared) {
  TileWriter writer(map, shared);
  if (map.mode == TensorMode::kIm2col) {
    add_pixels(map, position, writer);
  } else {
    add_tiled(map, position, writer);
  }
  return writer.take();
}

uint32_t swizzled(TensorSwizzle swizzle, uint32_t address) {
  uint32_t row = address >> 7;  // lines of 128 bytes decide
  switch (swizzle) {
    case TensorSwizzle::kNone:
      return address;
    case TensorSwizzle::k32B:
      return address ^ (row & 1) << 4;
    case TensorSwizzle::k64B:
      return address ^ (row & 3) << 4;
    case TensorSwizzle::k128B:
      return address ^ (row & 7) << 4;
    case TensorSwizzle::k128BAtom32B:
      return address ^ (row & 3) << 5;
    case TensorSwizzle::k128BAtom32BFlip8B:
      return address ^ (row & 3) << 5 ^ (row & 1) << 3;
    case TensorSwizzle::k128BAtom64B:
      return address ^ (row & 1) << 6;
  }
  return address;
}

std::array<std::byte, 8> tile_fill(const TensorMap& map) {
  std::array<std::byte, 8> fill = {};
  if (map.fills_nan == 0) return fill;
  // The NaN that instructions make: all bits but the sign.
  uint32_t bytes = bytes_of(map.type);
  for (uint32_t i = 0; i < fill.size(); ++i) {
    fill[i] = (i + 1) % bytes == 0 ? std::byte{0x7f} : std::byte{0xff};
  }
  return fill;
}

}  // namespace cb::sim
