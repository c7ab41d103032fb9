#pragma once

// Vector accesses: between memory, where a lane's elements are neighbours, and registers, where an
// element's lanes are. The common shapes are transposed in AVX registers, 8 or 4 lanes at a time.

#include <immintrin.h>

#include <cstdint>

#include "simulator/exec/code.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {

inline constexpr unsigned kMostElements = 8;

/// The slots of an operation's list.
inline const Slot* list_of(const Context& c, const MicroOp* op) {
  return c.code->lists.data() + op->list;
}

/// 32 lanes of four 4-byte elements, from memory to one array per element.
inline void split4x4(const std::byte* from, uint32_t* const* to) {
  for (int i = 0; i < kLanes; i += 8, from += 128) {
    const auto* rows = reinterpret_cast<const __m128i*>(from);
    __m256i row[4];
    for (int k = 0; k < 4; ++k) {
      row[k] = _mm256_inserti128_si256(_mm256_castsi128_si256(_mm_loadu_si128(rows + k)),
                                       _mm_loadu_si128(rows + k + 4), 1);
    }
    __m256i low01 = _mm256_unpacklo_epi32(row[0], row[1]);
    __m256i low23 = _mm256_unpacklo_epi32(row[2], row[3]);
    __m256i high01 = _mm256_unpackhi_epi32(row[0], row[1]);
    __m256i high23 = _mm256_unpackhi_epi32(row[2], row[3]);
    auto store = [&](int k, __m256i value) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[k] + i), value);
    };
    store(0, _mm256_unpacklo_epi64(low01, low23));
    store(1, _mm256_unpackhi_epi64(low01, low23));
    store(2, _mm256_unpacklo_epi64(high01, high23));
    store(3, _mm256_unpackhi_epi64(high01, high23));
  }
}

/// The reverse of split4x4.
inline void join4x4(const uint32_t* const* from, std::byte* to) {
  for (int i = 0; i < kLanes; i += 8, to += 128) {
    auto load = [&](int k) {
      return _mm256_load_si256(reinterpret_cast<const __m256i*>(from[k] + i));
    };
    __m256i e0 = load(0), e1 = load(1), e2 = load(2), e3 = load(3);
    __m256i low01 = _mm256_unpacklo_epi32(e0, e1);
    __m256i low23 = _mm256_unpacklo_epi32(e2, e3);
    __m256i high01 = _mm256_unpackhi_epi32(e0, e1);
    __m256i high23 = _mm256_unpackhi_epi32(e2, e3);
    __m256i row[4] = {_mm256_unpacklo_epi64(low01, low23), _mm256_unpackhi_epi64(low01, low23),
                      _mm256_unpacklo_epi64(high01, high23), _mm256_unpackhi_epi64(high01, high23)};
    auto* rows = reinterpret_cast<__m128i*>(to);
    for (int k = 0; k < 4; ++k) {
      _mm_storeu_si128(rows + k, _mm256_castsi256_si128(row[k]));
      _mm_storeu_si128(rows + k + 4, _mm256_extracti128_si256(row[k], 1));
    }
  }
}

/// 32 lanes of two 4-byte elements.
inline void split2x4(const std::byte* from, uint32_t* const* to) {
  for (int i = 0; i < kLanes; i += 8, from += 64) {
    const auto* lines = reinterpret_cast<const float*>(from);
    __m256 a = _mm256_loadu_ps(lines), b = _mm256_loadu_ps(lines + 8);
    auto store = [&](int k, __m256 value) {
      __m256i ordered = _mm256_permute4x64_epi64(_mm256_castps_si256(value), 0xd8);
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[k] + i), ordered);
    };
    store(0, _mm256_shuffle_ps(a, b, 0x88));
    store(1, _mm256_shuffle_ps(a, b, 0xdd));
  }
}

inline void join2x4(const uint32_t* const* from, std::byte* to) {
  for (int i = 0; i < kLanes; i += 8, to += 64) {
    __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from[0] + i));
    __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from[1] + i));
    __m256i low = _mm256_unpacklo_epi32(a, b), high = _mm256_unpackhi_epi32(a, b);
    auto* lines = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(lines, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(lines + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

/// 32 lanes of two 8-byte elements.
inline void split2x8(const std::byte* from, uint64_t* const* to) {
  for (int i = 0; i < kLanes; i += 4, from += 64) {
    const auto* lines = reinterpret_cast<const __m256i*>(from);
    __m256i a = _mm256_loadu_si256(lines), b = _mm256_loadu_si256(lines + 1);
    auto store = [&](int k, __m256i value) {
      _mm256_store_si256(reinterpret_cast<__m256i*>(to[k] + i),
                         _mm256_permute4x64_epi64(value, 0xd8));
    };
    store(0, _mm256_unpacklo_epi64(a, b));
    store(1, _mm256_unpackhi_epi64(a, b));
  }
}

inline void join2x8(const uint64_t* const* from, std::byte* to) {
  for (int i = 0; i < kLanes; i += 4, to += 64) {
    __m256i a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from[0] + i));
    __m256i b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from[1] + i));
    __m256i low = _mm256_unpacklo_epi64(a, b), high = _mm256_unpackhi_epi64(a, b);
    auto* lines = reinterpret_cast<__m256i*>(to);
    _mm256_storeu_si256(lines, _mm256_permute2x128_si256(low, high, 0x20));
    _mm256_storeu_si256(lines + 1, _mm256_permute2x128_si256(low, high, 0x31));
  }
}

/// 32 lanes of N elements that lie one after the other, for the shapes above.
template <typename T, unsigned N>
constexpr bool kTransposes = (sizeof(T) == 4 && (N == 2 || N == 4)) || (sizeof(T) == 8 && N == 2);

template <typename T, unsigned N>
inline void split_lanes(uint64_t address, T* const* to) {
  const auto* from = reinterpret_cast<const std::byte*>(address);
  if constexpr (sizeof(T) == 8) {
    split2x8(from, to);
  } else if constexpr (N == 4) {
    split4x4(from, to);
  } else {
    split2x4(from, to);
  }
}

template <typename T, unsigned N>
inline void join_lanes(const T* const* from, uint64_t address) {
  auto* to = reinterpret_cast<std::byte*>(address);
  if constexpr (sizeof(T) == 8) {
    join2x8(from, to);
  } else if constexpr (N == 4) {
    join4x4(from, to);
  } else {
    join2x4(from, to);
  }
}

}  // namespace cb::sim
