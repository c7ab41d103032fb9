#pragma once

// The arithmetic of matrix instructions. Whatever the type of the elements, a register of a
// fragment holds, over the 32 lanes of a warp, eight rows of 16 bytes: lanes 4g to 4g + 3 have row
// g of a part of A, or column g of a part of B. Such a line is widened to f32 at once, which is
// exact for every type but f64 and single bits.
//
// Precision. PTX leaves the order and the rounding of the sums of a matrix instruction open; what
// hardware does (aligning the products of a step to the largest and truncating) is not documented.
// Here products are exact, and an element of D starts from C and takes its products in the order of
// k, each sum rounded to the nearest f32; an .f16 accumulator is rounded once, at the end. That is
// at least as precise as hardware, whose sums for .e4m3 and .e5m2 are known to keep fewer bits.
// .tf32 operands lose their low 13 bits, subnormal numbers count in all types, NaN is 0x7fffffff
// (or 0x7fff). Sums of integers are exact, as every product and partial sum is below 2^24.

#include <immintrin.h>

#include <bit>
#include <cstdint>
#include <cstring>

#include "simulator/exec/half_math.h"

namespace cb::sim {

enum class MatrixType : uint8_t {
  kF16,
  kBf16,
  kTf32,
  kE4m3,
  kE5m2,
  kS8,
  kU8,
  kS4,
  kU4,
  kB1,
  kF64,
};

constexpr unsigned bits_of(MatrixType type) {
  switch (type) {
    case MatrixType::kF16:
    case MatrixType::kBf16:
      return 16;
    case MatrixType::kTf32:
      return 32;
    case MatrixType::kE4m3:
    case MatrixType::kE5m2:
    case MatrixType::kS8:
    case MatrixType::kU8:
      return 8;
    case MatrixType::kS4:
    case MatrixType::kU4:
      return 4;
    case MatrixType::kB1:
      return 1;
    case MatrixType::kF64:
      break;
  }
  return 64;
}
constexpr bool is_integer(MatrixType type) {
  return type >= MatrixType::kS8 && type <= MatrixType::kU4;
}

inline constexpr unsigned kLineBytes = 16;
constexpr unsigned elements_per_line(MatrixType type) { return kLineBytes * 8 / bits_of(type); }
/// Of one row of A, in any instruction: mma.sp with .s4 has the longest.
inline constexpr unsigned kMostK = 128;

inline V8f load8(const float* from) { return reinterpret_cast<V8f>(_mm256_loadu_ps(from)); }
inline void store8(float* to, V8f value) { _mm256_storeu_ps(to, reinterpret_cast<__m256>(value)); }

/// Eight bytes, extended to words.
inline V8u zero_extended(const uint8_t* bytes) {
  return reinterpret_cast<V8u>(
      _mm256_cvtepu8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
}
inline V8f widen_words(V8i words) {
  return reinterpret_cast<V8f>(_mm256_cvtepi32_ps(reinterpret_cast<__m256i>(words)));
}

inline V8f widen_e5m2(const uint8_t* bytes) {
  return F16::widen(packed(zero_extended(bytes) << 8));
}
/// With the exponent's field where f16 has it, the number is 2^8 times smaller.
inline V8f widen_e4m3(const uint8_t* bytes) {
  V8u words = zero_extended(bytes);
  V8f value = F16::widen(packed((words & 0x80) << 8 | (words & 0x7f) << 7)) * splat(256);
  V8i nan = (words & 0x7f) == 0x7f;
  return nan ? splat(__builtin_nanf("")) : value;
}

/// The elements of one line as f32: elements_per_line(type) of them, at least 4. Not for f64 and
/// b1.
inline void widen_line(MatrixType type, const void* line, float* out) {
  const auto* bytes = static_cast<const uint8_t*>(line);
  V8h halves;
  switch (type) {
    case MatrixType::kF16:
      std::memcpy(&halves, line, sizeof halves);
      store8(out, F16::widen(halves));
      return;
    case MatrixType::kBf16:
      std::memcpy(&halves, line, sizeof halves);
      store8(out, Bf16::widen(halves));
      return;
    case MatrixType::kTf32: {
      __m128i words = _mm_loadu_si128(static_cast<const __m128i*>(line));
      words = _mm_and_si128(words, _mm_set1_epi32(static_cast<int>(0xffffe000)));
      _mm_storeu_ps(out, _mm_castsi128_ps(words));
      return;
    }
    case MatrixType::kE4m3:
      for (unsigned i = 0; i < 16; i += 8) store8(out + i, widen_e4m3(bytes + i));
      return;
    case MatrixType::kE5m2:
      for (unsigned i = 0; i < 16; i += 8) store8(out + i, widen_e5m2(bytes + i));
      return;
    case MatrixType::kS8:
      for (int i = 0; i < 16; ++i) out[i] = static_cast<float>(static_cast<int8_t>(bytes[i]));
      return;
    case MatrixType::kU8:
      for (int i = 0; i < 16; ++i) out[i] = static_cast<float>(bytes[i]);
      return;
    case MatrixType::kS4:
      for (int i = 0; i < 16; ++i) {
        out[2 * i] = static_cast<float>(static_cast<int8_t>(bytes[i] << 4) >> 4);
        out[2 * i + 1] = static_cast<float>(static_cast<int8_t>(bytes[i]) >> 4);
      }
      return;
    case MatrixType::kU4:
      for (int i = 0; i < 16; ++i) {
        out[2 * i] = static_cast<float>(bytes[i] & 15);
        out[2 * i + 1] = static_cast<float>(bytes[i] >> 4);
      }
      return;
    case MatrixType::kB1:
    case MatrixType::kF64:
      return;
  }
}

/// Which column of D a place of a vector of eight stands for. Registers of 32-bit accumulators hold
/// the even columns of a row, and then the odd ones; pairs of .f16 are in order.
inline constexpr int kSplitColumns[8] = {0, 2, 4, 6, 1, 3, 5, 7};
inline constexpr int kPairedColumns[8] = {0, 1, 2, 3, 4, 5, 6, 7};

/// out[i] = element i of each of the eight rows.
inline void transpose8(const V8f* rows, float* out) {
  auto row = [&](int i) { return reinterpret_cast<__m256>(rows[i]); };
  __m256 pairs[8], quads[8];
  for (int i = 0; i < 8; i += 2) {
    pairs[i] = _mm256_unpacklo_ps(row(i), row(i + 1));
    pairs[i + 1] = _mm256_unpackhi_ps(row(i), row(i + 1));
  }
  for (int i = 0; i < 8; i += 4) {
    quads[i] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0x44);
    quads[i + 1] = _mm256_shuffle_ps(pairs[i], pairs[i + 2], 0xee);
    quads[i + 2] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0x44);
    quads[i + 3] = _mm256_shuffle_ps(pairs[i + 1], pairs[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(out + 8 * i, _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x20));
    _mm256_storeu_ps(out + 8 * (i + 4), _mm256_permute2f128_ps(quads[i], quads[i + 4], 0x31));
  }
}

/// Eight columns of B, each `k` elements (a multiple of 4) `stride` apart, to k vectors of eight.
inline void interleave_columns(const float* columns, unsigned stride, unsigned k, const int* order,
                               float* out) {
  for (unsigned at = 0; at < k; at += 8) {
    V8f rows[8];
    bool half = k - at < 8;
    for (unsigned i = 0; i < 8; ++i) {
      const float* from = columns + static_cast<unsigned>(order[i]) * stride + at;
      rows[i] =
          half ? reinterpret_cast<V8f>(_mm256_castps128_ps256(_mm_loadu_ps(from))) : load8(from);
    }
    if (half) {
      float both[64];
      transpose8(rows, both);
      std::memcpy(out + 8 * at, both, sizeof both / 2);
    } else {
      transpose8(rows, out + 8 * at);
    }
  }
}

/// Adds the products of `kRows` rows of A with `kBlocks` blocks of eight columns of B.
template <int kRows, int kBlocks>
[[gnu::always_inline]] inline void multiply_tile(const float* a, unsigned a_stride,
                                                 const float* const* b, unsigned k,
                                                 V8f (*sums)[kBlocks]) {
  V8f s[kRows][kBlocks];
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kBlocks; ++j) s[r][j] = sums[r][j];
  }
  for (unsigned i = 0; i < k; ++i) {
    V8f columns[kBlocks];
#pragma GCC unroll 8
    for (int j = 0; j < kBlocks; ++j) columns[j] = load8(b[j] + 8 * i);
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      V8f factor =
          reinterpret_cast<V8f>(_mm256_broadcast_ss(a + static_cast<unsigned>(r) * a_stride + i));
#pragma GCC unroll 8
      for (int j = 0; j < kBlocks; ++j) s[r][j] = fma8(factor, columns[j], s[r][j]);
    }
  }
#pragma GCC unroll 8
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int j = 0; j < kBlocks; ++j) sums[r][j] = s[r][j];
  }
}

/// What an f32 element of D is when it is NaN.
inline V8f with_canonical_nan(V8f value) {
  return is_nan(value) ? reinterpret_cast<V8f>(V8u{} + 0x7fffffff) : value;
}

/// C plus an exact sum of products, wrapped or clamped.
inline V8i add_products(V8i c, V8f products, bool saturates) {
  auto sum = reinterpret_cast<V8i>(_mm256_cvtps_epi32(reinterpret_cast<__m256>(products)));
  V8i wrapped = c + sum;
  if (!saturates) return wrapped;
  V8i overflows = (c ^ wrapped) & (sum ^ wrapped);
  V8i limit = (c >> 31) ^ 0x7fffffff;
  return overflows < 0 ? limit : wrapped;
}

}  // namespace cb::sim
