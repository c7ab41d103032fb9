#pragma once

// What a CUtensorMap holds. CUDA leaves its 128 bytes open; the shims write them, copies of tensors
// read them, and tensormap.replace changes them on the device. A program may hand over anything, so
// that who reads a map asks problem_of_map() first.

#include <cstdint>

namespace cb::sim {

/// Numbered as CUtensorMapDataType.
enum class TensorType : uint8_t {
  kU8,
  kU16,
  kU32,
  kS32,
  kU64,
  kS64,
  kF16,
  kF32,
  kF64,
  kBf16,
  kF32Ftz,
  kTf32,
  kTf32Ftz,
};

/// Numbered as CUtensorMapSwizzle: which chunks of a span of shared memory change places.
enum class TensorSwizzle : uint8_t {
  kNone,
  k32B,
  k64B,
  k128B,
  k128BAtom32B,
  k128BAtom32BFlip8B,
  k128BAtom64B,
};

enum class TensorMode : uint8_t { kTiled, kIm2col };

struct TensorMap {
  static constexpr uint32_t kMagic = 0x70614d54;
  static constexpr uint32_t kMaxRank = 5;
  static constexpr uint32_t kMaxBox = 256;
  static constexpr uint32_t kMaxPixels = 1024;
  static constexpr uint32_t kMaxElementStride = 8;
  static constexpr uint64_t kStrideLimit = uint64_t{1} << 40;
  static constexpr uint64_t kAlignment = 16;  ///< of the tensor and of strides, in bytes

  uint32_t magic;
  TensorMode mode;
  TensorType type;
  uint8_t rank;
  uint8_t interleave;  ///< 0: none
  TensorSwizzle swizzle;
  uint8_t fills_nan;  ///< else elements outside the tensor read as zero
  uint8_t l2_promotion;
  uint8_t reserved;
  uint8_t element_strides[5];
  uint8_t padding[7];
  uint64_t address;
  uint64_t strides[4];   ///< bytes, of dimensions 1 and up
  uint32_t last[5];      ///< size of each dimension, minus one: it may be 2^32
  uint16_t box[5];       ///< kTiled; kIm2col: [0] channels, [1] pixels
  int16_t box_lower[3];  ///< kIm2col, of dimensions 1 to rank - 2: first and last place of the
  int16_t box_upper[3];  ///< bounding box, from the first and from the last of the tensor
  uint8_t unused[128 - 106];
};
static_assert(sizeof(TensorMap) == 128);

/// 0 for what is no type.
constexpr uint32_t bytes_of(TensorType type) {
  switch (type) {
    case TensorType::kU8:
      return 1;
    case TensorType::kU16:
    case TensorType::kF16:
    case TensorType::kBf16:
      return 2;
    case TensorType::kU32:
    case TensorType::kS32:
    case TensorType::kF32:
    case TensorType::kF32Ftz:
    case TensorType::kTf32:
    case TensorType::kTf32Ftz:
      return 4;
    case TensorType::kU64:
    case TensorType::kS64:
    case TensorType::kF64:
      return 8;
  }
  return 0;
}

constexpr bool is_floating(TensorType type) {
  return type >= TensorType::kF16 && type <= TensorType::kTf32Ftz && bytes_of(type) != 0;
}

/// Types whose elements change on the way; how is not published.
constexpr bool converts(TensorType type) {
  return type >= TensorType::kF32Ftz && type <= TensorType::kTf32Ftz;
}

/// The bytes in which a swizzle moves chunks; 0 without one.
constexpr uint32_t span_of(TensorSwizzle swizzle) {
  switch (swizzle) {
    case TensorSwizzle::kNone:
      return 0;
    case TensorSwizzle::k32B:
      return 32;
    case TensorSwizzle::k64B:
      return 64;
    default:
      return 128;
  }
}

/// Modes that devices of compute capability 9.0 do not have.
constexpr bool has_wide_atom(TensorSwizzle swizzle) { return swizzle > TensorSwizzle::k128B; }

/// The rules that both modes share, as cuTensorMapEncodeTiled lists them. nullptr: they hold.
constexpr const char* problem_of_shape(const TensorMap& map) {
  if (bytes_of(map.type) == 0) return "unknown data type";
  if (map.rank < 1 || map.rank > TensorMap::kMaxRank) return "rank is not 1 to 5";
  if (map.swizzle > TensorSwizzle::k128BAtom64B) return "unknown swizzle mode";
  if (map.interleave > 2) return "unknown interleave layout";
  if (map.interleave != 0 && map.rank < 3) return "interleaved layouts need a rank of 3 or more";
  if (map.fills_nan > 1) return "unknown out-of-bounds fill";
  if (map.fills_nan != 0 && !is_floating(map.type)) return "NaN fill of a type that has no NaN";
  if (map.l2_promotion > 3) return "unknown L2 promotion";
  uint64_t alignment = map.interleave == 2 ? 2 * TensorMap::kAlignment : TensorMap::kAlignment;
  if (map.interleave == 2 && map.swizzle != TensorSwizzle::k32B) {
    return "32-byte interleaved layouts need the 32-byte swizzle";
  }
  if (map.address % alignment != 0) return "global address is not aligned";
  for (uint32_t i = 0; i + 1 < map.rank; ++i) {
    if (map.strides[i] % alignment != 0) return "global stride is not aligned";
    if (map.strides[i] >= TensorMap::kStrideLimit) return "global stride is not below 2^40";
  }
  for (uint32_t i = 0; i < map.rank; ++i) {
    bool ignored = i == 0 && map.interleave == 0;
    uint32_t stride = map.element_strides[i];
    if (!ignored && (stride < 1 || stride > TensorMap::kMaxElementStride)) {
      return "element stride is not 1 to 8";
    }
  }
  return nullptr;
}

/// How far the corners of an im2col box of that rank may be from the tensor's.
constexpr int im2col_corner_limit(uint32_t rank) {
  return rank == 3 ? 32768 : rank == 4 ? 128 : 16;
}

constexpr const char* problem_of_box(const TensorMap& map) {
  uint32_t sizes = map.mode == TensorMode::kIm2col ? 1 : map.rank;
  for (uint32_t i = 0; i < sizes; ++i) {
    if (map.box[i] < 1 || map.box[i] > TensorMap::kMaxBox) return "box size is not 1 to 256";
  }
  uint32_t inner = map.box[0] * bytes_of(map.type);
  if (map.interleave == 0) {
    if (inner % 16 != 0) return "inner size of the box is not a multiple of 16 bytes";
    if (map.swizzle != TensorSwizzle::kNone && inner > span_of(map.swizzle)) {
      return "inner size of the box exceeds the swizzle";
    }
  }
  if (map.mode == TensorMode::kTiled) return nullptr;
  if (map.rank < 3) return "im2col needs a rank of 3 or more";
  if (map.box[1] < 1 || map.box[1] > TensorMap::kMaxPixels) return "pixels are not 1 to 1024";
  int limit = im2col_corner_limit(map.rank);
  for (uint32_t i = 0; i + 2 < map.rank; ++i) {
    int lower = map.box_lower[i], upper = map.box_upper[i];
    if (lower < -limit || lower >= limit || upper < -limit || upper >= limit) {
      return "corner of the bounding box is out of range";
    }
    if (int64_t{map.last[i + 1]} + upper < lower) return "bounding box is empty";
  }
  return nullptr;
}

/// Why a map cannot be used; nullptr: it can.
constexpr const char* problem_of_map(const TensorMap& map) {
  if (map.magic != TensorMap::kMagic) return "it was not encoded by cuTensorMapEncode*";
  if (map.mode != TensorMode::kTiled && map.mode != TensorMode::kIm2col) return "unknown mode";
  if (const char* problem = problem_of_shape(map)) return problem;
  return problem_of_box(map);
}

}  // namespace cb::sim
