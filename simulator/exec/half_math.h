#pragma once

// Arithmetic on .f16 and .bf16, eight numbers at a time in f32. A result that is rounded to f32 and
// then to 16 bits is the correctly rounded one for sums and products, because f32 has more than
// twice the precision. (Products of bf16 that f32 cannot hold are below half the smallest bf16.) It
// is not for fma: the second rounding errs where the first one ends exactly between two neighbours
// without being exact. Such lanes are found and computed again in double precision.

#include <immintrin.h>

#include <bit>
#include <cmath>
#include <cstdint>

#include "simulator/exec/number_format.h"

namespace cb::sim {

typedef float V8f __attribute__((vector_size(32)));
typedef int32_t V8i __attribute__((vector_size(32)));
typedef uint32_t V8u __attribute__((vector_size(32)));
typedef uint16_t V8h __attribute__((vector_size(16)));
typedef uint16_t V16h __attribute__((vector_size(32)));

inline V8f splat(float value) { return V8f{} + value; }
inline V8i is_nan(V8f v) { return v != v; }
inline bool any(V8i mask) { return _mm256_movemask_ps(reinterpret_cast<__m256>(mask)) != 0; }

inline V8u extended(V8h halves) {
  return reinterpret_cast<V8u>(_mm256_cvtepu16_epi32(reinterpret_cast<__m128i>(halves)));
}
/// The low halves of words below 2^16.
inline V8h packed(V8u words) {
  __m256i pairs = _mm256_packus_epi32(reinterpret_cast<__m256i>(words), __m256i{});
  return reinterpret_cast<V8h>(_mm256_castsi256_si128(_mm256_permute4x64_epi64(pairs, 0x08)));
}

struct F16 {
  static constexpr NumberFormat kFormat = kF16Format;
  static constexpr uint16_t kNan = 0x7fff;
  static constexpr uint16_t kInfinity = 0x7c00;

  static V8f widen(V8h halves) {
    return reinterpret_cast<V8f>(_mm256_cvtph_ps(reinterpret_cast<__m128i>(halves)));
  }
  /// To nearest; NaN becomes the canonical one.
  static V8h narrow(V8f v) {
    V8h halves = reinterpret_cast<V8h>(
        _mm256_cvtps_ph(reinterpret_cast<__m256>(v), _MM_FROUND_TO_NEAREST_INT));
    return (halves & 0x7fff) > kInfinity ? V8h{} + kNan : halves;
  }
  /// Where rounding v to 16 bits could depend on what an inexact v lost: v is between two
  /// neighbours, or so small that f16 has fewer bits.
  static V8i doubtful(V8f v) {
    V8u bits = reinterpret_cast<V8u>(v);
    V8u magnitude = bits & 0x7fffffff;
    return ((bits & 0x1fff) == 0x1000) | ((magnitude < 0x38800000) & (magnitude != 0));
  }
};

struct Bf16 {
  static constexpr NumberFormat kFormat = kBf16Format;
  static constexpr uint16_t kNan = 0x7fff;
  static constexpr uint16_t kInfinity = 0x7f80;

  static V8f widen(V8h halves) { return reinterpret_cast<V8f>(extended(halves) << 16); }
  static V8h narrow(V8f v) {
    V8u bits = reinterpret_cast<V8u>(v);
    V8u rounded = (bits + 0x7fff + (bits >> 16 & 1)) >> 16;
    return packed(is_nan(v) ? V8u{} + kNan : rounded);
  }
  static V8i doubtful(V8f v) { return (reinterpret_cast<V8u>(v) & 0xffff) == 0x8000; }
};

/// a * b + c exactly, rounded once: for lanes that `doubtful` found.
template <typename Format>
uint16_t fma_once(float a, float b, float c) {
  // Products of two 11-bit numbers are exact in double. So is the error of their sum with c.
  double product = static_cast<double>(a) * b;
  double sum = product + c;
  double c_part = sum - product;
  double error = (product - (sum - c_part)) + (c - c_part);
  return static_cast<uint16_t>(round_double(sum, error, Format::kFormat, Rounding::kNearest));
}

/// Where v, which is fma(a, b, c), is known to be exact or not finite. A product that f32 cannot
/// hold is too small to bring a doubtful v about, or infinite, and then the error is NaN.
inline V8i exact_fma(V8f v, V8f a, V8f b, V8f c) {
  V8f product = a * b;
  V8f c_part = v - product;
  V8f error = (product - (v - c_part)) + (c - c_part);
  V8i finite = (reinterpret_cast<V8u>(v) & 0x7fffffff) < 0x7f800000;
  return (error == 0) | ~finite;
}

/// Rounds `v`, which is fma(a, b, c) in f32, to 16 bits as if it had not been rounded before.
template <typename Format>
inline V8h narrow_fma(V8f v, V8f a, V8f b, V8f c) {
  V8h narrowed = Format::narrow(v);
  V8i doubt = Format::doubtful(v);
  if (any(doubt)) [[unlikely]] {
    doubt &= ~exact_fma(v, a, b, c);
    for (int i = 0; i < 8; ++i) {
      if (doubt[i] != 0) narrowed[i] = fma_once<Format>(a[i], b[i], c[i]);
    }
  }
  return narrowed;
}

inline V8f fma8(V8f a, V8f b, V8f c) {
  return reinterpret_cast<V8f>(_mm256_fmadd_ps(
      reinterpret_cast<__m256>(a), reinterpret_cast<__m256>(b), reinterpret_cast<__m256>(c)));
}

/// Clamps to [0, 1], NaN to +0.
inline V8f saturate8(V8f v) {
  V8f positive = v > 0 ? v : V8f{};
  return positive < 1 ? positive : splat(1);
}

/// Subnormal f16 patterns become zero of the same sign.
template <typename Halves>
Halves flush_f16(Halves bits) {
  return (bits & 0x7c00) == 0 ? bits & 0x8000 : bits;
}

}  // namespace cb::sim
