// Boxes against a model that walks elements one by one, written from the PTX ISA's chapter on
// tensors: coordinates in, one global address and one place in shared memory out.

#include "simulator/exec/tensor_tile.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

namespace cb::sim {
namespace {

/// Place in shared memory of each byte, and what goes there; 0: fill.
using Bytes = std::map<uint32_t, uint64_t>;

/// The tables of 16-byte chunks in the ISA: chunk `c` of line `r` goes to column table[r][c].
uint32_t swizzled_by_table(TensorSwizzle swizzle, uint32_t address) {
  constexpr uint32_t k128[8][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6},
                                   {2, 3, 0, 1, 6, 7, 4, 5}, {3, 2, 1, 0, 7, 6, 5, 4},
                                   {4, 5, 6, 7, 0, 1, 2, 3}, {5, 4, 7, 6, 1, 0, 3, 2},
                                   {6, 7, 4, 5, 2, 3, 0, 1}, {7, 6, 5, 4, 3, 2, 1, 0}};
  constexpr uint32_t k64[4][8] = {{0, 1, 2, 3, 4, 5, 6, 7},
                                  {1, 0, 3, 2, 5, 4, 7, 6},
                                  {2, 3, 0, 1, 6, 7, 4, 5},
                                  {3, 2, 1, 0, 7, 6, 5, 4}};
  constexpr uint32_t k32[2][8] = {{0, 1, 2, 3, 4, 5, 6, 7}, {1, 0, 3, 2, 5, 4, 7, 6}};
  constexpr uint32_t kAtom32[4][4] = {{0, 1, 2, 3}, {1, 0, 3, 2}, {2, 3, 0, 1}, {3, 2, 1, 0}};
  uint32_t line = address / 128, chunk = address % 128 / 16, in_chunk = address % 16;
  uint32_t wide = address % 128 / 32, in_wide = address % 32;
  switch (swizzle) {
    case TensorSwizzle::kNone:
      return address;
    case TensorSwizzle::k32B:
      return line * 128 + k32[line % 2][chunk] * 16 + in_chunk;
    case TensorSwizzle::k64B:
      return line * 128 + k64[line % 4][chunk] * 16 + in_chunk;
    case TensorSwizzle::k128B:
      return line * 128 + k128[line % 8][chunk] * 16 + in_chunk;
    case TensorSwizzle::k128BAtom32B:
      return line * 128 + kAtom32[line % 4][wide] * 32 + in_wide;
    case TensorSwizzle::k128BAtom32BFlip8B: {
      uint32_t half = in_chunk / 8;
      uint32_t flipped = line % 2 == 1 ? 1 - half : half;
      return line * 128 + kAtom32[line % 4][wide] * 32 + in_wide / 16 * 16 + flipped * 8 +
             address % 8;
    }
    case TensorSwizzle::k128BAtom64B: {
      uint32_t side = address % 128 / 64;
      return line * 128 + (line % 2 == 1 ? 1 - side : side) * 64 + address % 64;
    }
  }
  return address;
}

class Model {
 public:
  Model(const TensorMap& map, uint32_t shared) : map_(map), next_(shared) {}

  void element(const int64_t* at) {
    bool inside = true;
    uint64_t address = map_.address;
    for (int i = 0; i < map_.rank; ++i) {
      if (at[i] < 0 || at[i] > int64_t{map_.last[i]}) inside = false;
      uint64_t stride = i == 0 ? bytes_of(map_.type) : map_.strides[i - 1];
      address += static_cast<uint64_t>(at[i]) * stride;
    }
    for (uint32_t i = 0; i < bytes_of(map_.type); ++i, ++next_) {
      bytes_[swizzled_by_table(map_.swizzle, next_)] = inside ? address + i : 0;
    }
  }
  const Bytes& bytes() const { return bytes_; }

 private:
  const TensorMap& map_;
  uint32_t next_;
  Bytes bytes_;
};

Bytes model_tiled(const TensorMap& map, const TilePosition& position, uint32_t shared) {
  Model model(map, shared);
  auto box = [&](int i) { return i < map.rank ? map.box[i] : 1; };
  auto step = [&](int i) { return i > 0 && i < map.rank ? map.element_strides[i] : 1; };
  auto place = [&](int i, int n) { return int64_t{i < map.rank ? position.at[i] : 0} + n; };
  for (int e = 0; e < box(4); e += step(4))
    for (int d = 0; d < box(3); d += step(3))
      for (int k = 0; k < box(2); k += step(2))
        for (int b = 0; b < box(1); b += step(1))
          for (int a = 0; a < box(0); ++a) {
            int64_t at[] = {place(0, a), place(1, b), place(2, k), place(3, d), place(4, e)};
            model.element(at);
          }
  return model.bytes();
}

/// Counts through the bounding box from its first pixel, and takes those from the position on.
Bytes model_im2col(const TensorMap& map, const TilePosition& position, uint32_t shared) {
  Model model(map, shared);
  int rank = map.rank;
  auto size = [&](int i) { return int64_t{map.last[i]} + 1; };
  std::vector<int64_t> at(position.at.begin(), position.at.begin() + rank);
  for (int pixel = 0; pixel < map.box[1]; ++pixel) {
    for (int channel = 0; channel < map.box[0]; ++channel) {
      std::vector<int64_t> read = at;
      read[0] += channel;
      for (int i = 1; i < rank - 1; ++i) read[i] += position.offsets[i - 1];
      model.element(read.data());
    }
    bool carries = true;
    for (int i = 1; i < rank - 1 && carries; ++i) {
      at[i] += map.element_strides[i];
      carries = at[i] >= size(i) + map.box_upper[i - 1];
      if (carries) at[i] = map.box_lower[i - 1];
    }
    if (carries) at[rank - 1] += map.element_strides[rank - 1];
  }
  return model.bytes();
}

Bytes bytes_of_pieces(const std::vector<TilePiece>& pieces) {
  Bytes bytes;
  for (const TilePiece& piece : pieces) {
    for (uint32_t i = 0; i < piece.bytes; ++i) {
      EXPECT_TRUE(bytes.emplace(piece.shared + i, piece.global == 0 ? 0 : piece.global + i).second)
          << "written twice: " << piece.shared + i;
    }
  }
  return bytes;
}

class TensorTile : public ::testing::Test {
 protected:
  int64_t random(int64_t lo, int64_t hi) {
    return std::uniform_int_distribution<int64_t>(lo, hi)(engine_);
  }

  TensorMap random_map(TensorMode mode, uint32_t rank) {
    TensorMap map = {};
    map.magic = TensorMap::kMagic;
    map.mode = mode;
    map.type = static_cast<TensorType>(random(0, 9));
    map.rank = static_cast<uint8_t>(rank);
    map.swizzle = static_cast<TensorSwizzle>(random(0, 6));
    map.address = 0x7000'0000'0000 + static_cast<uint64_t>(random(0, 1000)) * 16;
    uint64_t unit = 16 / bytes_of(map.type);
    uint64_t longest = map.swizzle == TensorSwizzle::kNone ? 4 : span_of(map.swizzle) / 16;
    map.box[0] = static_cast<uint16_t>(
        unit * static_cast<uint64_t>(random(1, static_cast<int64_t>(longest))));
    for (uint32_t i = 0; i < rank; ++i) {
      map.last[i] = static_cast<uint32_t>(random(0, i == 0 ? 100 : 9));
      map.element_strides[i] = static_cast<uint8_t>(random(0, 2) == 0 ? random(1, 8) : 1);
      if (i > 0) map.strides[i - 1] = static_cast<uint64_t>(random(0, 5000)) * 16;
      if (i > 0) map.box[i] = static_cast<uint16_t>(random(1, 7));
    }
    return map;
  }

  std::mt19937_64 engine_{7};
};

TEST_F(TensorTile, TiledBoxesOfAllRanksAreThoseOfTheModel) {
  for (int round = 0; round < 400; ++round) {
    TensorMap map = random_map(TensorMode::kTiled, 1 + round % 5);
    ASSERT_EQ(problem_of_map(map), nullptr) << problem_of_map(map);
    TilePosition position;
    for (int i = 0; i < map.rank; ++i) {
      position.at[i] = static_cast<int32_t>(random(-12, int64_t{map.last[i]} + 4));
    }
    auto shared = static_cast<uint32_t>(random(0, 20)) * 128;
    Bytes expected = model_tiled(map, position, shared);
    EXPECT_EQ(tile_bytes(map), expected.size());
    EXPECT_EQ(problem_of_position(map, position), std::nullopt);
    Bytes actual = bytes_of_pieces(tile_pieces(map, position, shared));
    ASSERT_EQ(actual, expected) << "round " << round;
    EXPECT_GE(actual.begin()->first, shared);
    EXPECT_LT(actual.rbegin()->first, shared + tile_room(map));
  }
}

TEST_F(TensorTile, Im2colBoxesAreThoseOfTheModel) {
  for (int round = 0; round < 400; ++round) {
    TensorMap map = random_map(TensorMode::kIm2col, 3 + round % 3);
    map.box[1] = static_cast<uint16_t>(random(1, 40));
    TilePosition position;
    position.at[0] = static_cast<int32_t>(random(-3, 100));
    for (int i = 1; i + 1 < map.rank; ++i) {
      map.box_lower[i - 1] = static_cast<int16_t>(random(-3, 2));
      int64_t shortest = map.box_lower[i - 1] - int64_t{map.last[i]};
      map.box_upper[i - 1] = static_cast<int16_t>(random(std::max<int64_t>(shortest, -4), 3));
      position.at[i] = static_cast<int32_t>(
          random(map.box_lower[i - 1], int64_t{map.last[i]} + map.box_upper[i - 1]));
      position.offsets[i - 1] = static_cast<uint16_t>(random(0, 4));
    }
    position.at[map.rank - 1] = static_cast<int32_t>(random(-1, 10));
    ASSERT_EQ(problem_of_map(map), nullptr) << problem_of_map(map);
    ASSERT_EQ(problem_of_position(map, position), std::nullopt);
    Bytes expected = model_im2col(map, position, 1024);
    EXPECT_EQ(tile_bytes(map), expected.size());
    ASSERT_EQ(bytes_of_pieces(tile_pieces(map, position, 1024)), expected) << "round " << round;
  }
}

TEST_F(TensorTile, AnIm2colPositionOutsideTheBoundingBoxIsNamed) {
  TensorMap map = random_map(TensorMode::kIm2col, 4);
  map.last[1] = map.last[2] = 9;
  map.box_lower[0] = -1;
  map.box_upper[0] = -2;
  TilePosition position;
  position.at = {0, -2, 0, 0, 0};
  EXPECT_EQ(problem_of_position(map, position),
            "coordinate 1 is -2, outside the bounding box, -1 to 7");
  position.at[1] = 7;
  EXPECT_EQ(problem_of_position(map, position), std::nullopt);
  position.at[1] = 8;
  EXPECT_NE(problem_of_position(map, position), std::nullopt);
}

TEST_F(TensorTile, TheFillIsZeroOrANanOfTheType) {
  TensorMap map = random_map(TensorMode::kTiled, 1);
  map.type = TensorType::kF32;
  map.fills_nan = 0;
  EXPECT_EQ(tile_fill(map), (std::array<std::byte, 8>{}));
  map.fills_nan = 1;
  auto fill = tile_fill(map);
  EXPECT_EQ(fill[3], std::byte{0x7f});
  EXPECT_EQ(fill[4], std::byte{0xff});
  map.type = TensorType::kBf16;
  EXPECT_EQ(tile_fill(map)[1], std::byte{0x7f});
  map.type = TensorType::kF64;
  EXPECT_EQ(tile_fill(map)[6], std::byte{0xff});
  EXPECT_EQ(tile_fill(map)[7], std::byte{0x7f});
}

TEST_F(TensorTile, HostileMapsAreNamed) {
  for (int round = 0; round < 4000; ++round) {
    TensorMap map = random_map(round % 2 == 0 ? TensorMode::kTiled : TensorMode::kIm2col, 3);
    auto* bytes = reinterpret_cast<unsigned char*>(&map);
    for (int n = 0; n < 3; ++n) bytes[random(4, 105)] = static_cast<unsigned char>(random(0, 255));
    // What passes is safe to walk, once its size is known to be small.
    if (problem_of_map(map) != nullptr || tile_bytes(map) > 4096) continue;
    TilePosition position;
    for (int32_t& at : position.at) at = static_cast<int32_t>(random(INT32_MIN, INT32_MAX));
    if (problem_of_position(map, position)) continue;
    uint64_t total = 0;
    for (const TilePiece& piece : tile_pieces(map, position, 0)) total += piece.bytes;
    EXPECT_EQ(total, tile_bytes(map));
  }
  EXPECT_STREQ(problem_of_map(TensorMap{}), "it was not encoded by cuTensorMapEncode*");
}

}  // namespace
}  // namespace cb::sim
