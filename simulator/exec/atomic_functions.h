#pragma once

// What atomics and reductions do to one number in memory. `operator()(old, operand, extra)` gives
// the new value; all work on bit patterns, whose width is that of the access.

#include <immintrin.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <type_traits>

namespace cb::sim {

template <typename T>
struct AtomicAdd {
  T operator()(T old, T operand, T) const { return static_cast<T>(old + operand); }
};
template <typename T>
struct AtomicAnd {
  T operator()(T old, T operand, T) const { return old & operand; }
};
template <typename T>
struct AtomicOr {
  T operator()(T old, T operand, T) const { return old | operand; }
};
template <typename T>
struct AtomicXor {
  T operator()(T old, T operand, T) const { return old ^ operand; }
};
template <typename T>
struct AtomicExchange {
  T operator()(T, T operand, T) const { return operand; }
};
/// The operand is what is compared with, the extra one the new value.
template <typename T>
struct AtomicCompare {
  T operator()(T old, T operand, T extra) const { return old == operand ? extra : old; }
};
template <typename T>
struct AtomicIncrement {
  T operator()(T old, T limit, T) const { return old >= limit ? 0 : static_cast<T>(old + 1); }
};
template <typename T>
struct AtomicDecrement {
  T operator()(T old, T limit, T) const {
    return old == 0 || old > limit ? limit : static_cast<T>(old - 1);
  }
};

/// Min and max of the unsigned patterns T read as Number.
template <typename T, typename Number>
struct AtomicMin {
  T operator()(T old, T operand, T) const {
    return std::bit_cast<T>(std::min(std::bit_cast<Number>(old), std::bit_cast<Number>(operand)));
  }
};
template <typename T, typename Number>
struct AtomicMax {
  T operator()(T old, T operand, T) const {
    return std::bit_cast<T>(std::max(std::bit_cast<Number>(old), std::bit_cast<Number>(operand)));
  }
};

/// Sums of .f32 in global memory flush subnormals, those in shared memory do not.
template <bool flush>
struct AtomicAddF32 {
  static float flushed(float value) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    if (flush && (bits & 0x7f800000) == 0) bits &= 0x80000000;
    return std::bit_cast<float>(bits);
  }
  uint32_t operator()(uint32_t old, uint32_t operand, uint32_t) const {
    float sum = flushed(std::bit_cast<float>(old)) + flushed(std::bit_cast<float>(operand));
    if (sum != sum) return 0x7fffffff;
    return std::bit_cast<uint32_t>(flushed(sum));
  }
};
struct AtomicAddF64 {
  uint64_t operator()(uint64_t old, uint64_t operand, uint64_t) const {
    return std::bit_cast<uint64_t>(std::bit_cast<double>(old) + std::bit_cast<double>(operand));
  }
};

/// One .f16 or .bf16 number in f32 and back, to nearest.
struct HalfF16 {
  static float widen(uint16_t bits) { return _cvtsh_ss(bits); }
  static uint16_t narrow(float value) {
    if (value != value) return 0x7fff;
    return _cvtss_sh(value, _MM_FROUND_TO_NEAREST_INT);
  }
};
struct HalfBf16 {
  static float widen(uint16_t bits) { return std::bit_cast<float>(uint32_t{bits} << 16); }
  static uint16_t narrow(float value) {
    if (value != value) return 0x7fff;
    uint32_t bits = std::bit_cast<uint32_t>(value);
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
  }
};

template <typename Half>
struct HalfAdd {
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t) const {
    return Half::narrow(Half::widen(a) + Half::widen(b));
  }
};
/// The number where only one is, -0 below +0.
template <typename Half, bool least>
struct HalfExtreme {
  uint16_t operator()(uint16_t a, uint16_t b, uint16_t) const {
    float wide_a = Half::widen(a), wide_b = Half::widen(b);
    if (wide_a != wide_a) return wide_b != wide_b ? 0x7fff : b;
    if (wide_b != wide_b) return a;
    if (wide_a == wide_b) return static_cast<uint16_t>(least ? a | b : a & b);
    return (wide_a < wide_b) == least ? a : b;
  }
};
template <typename Half>
using HalfMin = HalfExtreme<Half, true>;
template <typename Half>
using HalfMax = HalfExtreme<Half, false>;

/// A function of 16-bit numbers on both halves of a word.
template <typename F>
struct OnPairs {
  uint32_t operator()(uint32_t old, uint32_t operand, uint32_t) const {
    auto half = [&](int shift) {
      return uint32_t{
          F{}(static_cast<uint16_t>(old >> shift), static_cast<uint16_t>(operand >> shift), 0)};
    };
    return half(0) | half(16) << 16;
  }
};

/// Replaces the number at `address`, atomically for host processes that map the memory too.
/// Returns what was there; sets `changed` if it is something else afterwards.
template <typename F, typename T>
inline T update_at(uint64_t address, T operand, T extra, bool& changed) {
  T* place = reinterpret_cast<T*>(address);
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  for (;;) {
    T next = F{}(old, operand, extra);
    if (next == old) return old;
    if (__atomic_compare_exchange_n(place, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
      changed = true;
      return old;
    }
  }
}

}  // namespace cb::sim
