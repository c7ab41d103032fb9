#pragma once

// The vector code beneath lanes.h: sequences, blends by a mask of lanes, and masks of lanes, for
// arrays of 32 lanes that are aligned to 64 bytes. In GCC's vector types, so that it also compiles
// where AVX2 is not enabled.

#include <emmintrin.h>

#include <cstdint>

namespace cb::sim {

/// out[i] = base + i * stride. Bits is the unsigned type of the lanes' width.
template <typename Bits>
inline void expand_lanes(void* out, Bits base, Bits stride) {
  constexpr int kStep = 32 / sizeof(Bits);
  typedef Bits V __attribute__((vector_size(32), may_alias));
  V* lanes = static_cast<V*>(out);
  V value = V{} + base;
  if constexpr (sizeof(Bits) == 8) {
    // There is no multiplication of 64-bit lanes in AVX2.
    const V odd = {0, ~Bits{0}, 0, ~Bits{0}}, upper = {0, 0, ~Bits{0}, ~Bits{0}};
    value += ((V{} + stride) & odd) + ((V{} + (stride << 1)) & upper);
  } else {
    V iota;
    for (int i = 0; i < kStep; ++i) iota[i] = static_cast<Bits>(i);
    value += iota * stride;
  }
  const V step = V{} + static_cast<Bits>(stride * kStep);
  for (int k = 0; k < 32 / kStep; ++k, value += step) lanes[k] = value;
}

/// out[i] = bit i of `mask` ? yes[i] : no[i]. `out` may be one of the others.
template <typename T>
inline void mix_lanes(T* out, const T* yes, const T* no, uint32_t mask) {
  if constexpr (sizeof(T) == 4) {
    typedef uint32_t V __attribute__((vector_size(32), may_alias));
    const V bit = {1, 2, 4, 8, 16, 32, 64, 128};
    V* o = reinterpret_cast<V*>(out);
    const V* y = reinterpret_cast<const V*>(yes);
    const V* n = reinterpret_cast<const V*>(no);
    for (int k = 0; k < 4; ++k) o[k] = (bit & (mask >> (8 * k))) != 0 ? y[k] : n[k];
  } else if constexpr (sizeof(T) == 8) {
    typedef uint64_t V __attribute__((vector_size(32), may_alias));
    const V bit = {1, 2, 4, 8};
    V* o = reinterpret_cast<V*>(out);
    const V* y = reinterpret_cast<const V*>(yes);
    const V* n = reinterpret_cast<const V*>(no);
    for (int k = 0; k < 8; ++k) o[k] = (bit & uint64_t{mask >> (4 * k)}) != 0 ? y[k] : n[k];
  } else if constexpr (sizeof(T) == 2) {
    typedef uint16_t V __attribute__((vector_size(32), may_alias));
    const V bit = {1,     2,     4,     8,     0x10,   0x20,   0x40,   0x80,
                   0x100, 0x200, 0x400, 0x800, 0x1000, 0x2000, 0x4000, 0x8000};
    V* o = reinterpret_cast<V*>(out);
    const V* y = reinterpret_cast<const V*>(yes);
    const V* n = reinterpret_cast<const V*>(no);
    for (int k = 0; k < 2; ++k) {
      const auto half = static_cast<uint16_t>(mask >> (16 * k));
      o[k] = (bit & half) != 0 ? y[k] : n[k];
    }
  } else {
    for (int i = 0; i < 32; ++i) out[i] = (mask >> i & 1) != 0 ? yes[i] : no[i];
  }
}

/// to[i] = from[i] for the lanes i whose bit is set in `mask`.
template <typename T>
inline void blend_lanes(T* to, const T* from, uint32_t mask) {
  mix_lanes(to, from, to, mask);
}

/// Bit i: value(i), for 32 lanes.
template <typename Value>
inline uint32_t pack_lane_bits(Value&& value) {
  alignas(32) uint8_t flags[32];
  for (int i = 0; i < 32; ++i) flags[i] = value(i) ? 0xff : 0;
  const __m128i* halves = reinterpret_cast<const __m128i*>(flags);
  uint32_t low = static_cast<uint32_t>(_mm_movemask_epi8(_mm_load_si128(halves)));
  uint32_t high = static_cast<uint32_t>(_mm_movemask_epi8(_mm_load_si128(halves + 1)));
  return low | high << 16;
}

}  // namespace cb::sim
