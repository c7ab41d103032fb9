#pragma once

// Arithmetic on affine slots: base + lane * stride, modulo 2^width. Sums, differences and products
// with a uniform factor are exact in the ring, whatever wraps. Everything that looks at the value
// (comparisons, right shifts, division, widening) is affine only where no lane wraps, so that the
// lanes are a monotone sequence between the first and the last.
//
// Strides are 32 bits. Of slots up to 32 bits wide every stride has a representative; of 64-bit
// slots a stride may not fit, and then the result is not affine.

#include <bit>
#include <limits>
#include <type_traits>

#include "simulator/exec/lanes.h"

namespace cb::sim {

/// Stores base and stride as a slot of T's width; false where the stride does not fit.
template <typename T>
inline bool store_affine(Meta& r, uint64_t base, int64_t stride) {
  r.base = static_cast<BitsOf<T>>(base);
  if constexpr (sizeof(T) == 8) {
    if (stride != static_cast<int32_t>(stride)) return false;
    r.stride = static_cast<int32_t>(stride);
  } else {
    r.stride = static_cast<std::make_signed_t<BitsOf<T>>>(stride);
  }
  return true;
}

/// The values of lanes 0 and 31, of an integer type T; false where a lane between them wraps.
template <typename T>
inline bool affine_ends(const Meta& m, T& first, T& last) {
  first = from_base<T>(m.base);
  return !__builtin_add_overflow(first, int64_t{m.stride} * (kLanes - 1), &last);
}

template <typename T>
inline bool affine_add(const Meta& a, const Meta& b, Meta& r) {
  return store_affine<T>(r, a.base + b.base, int64_t{a.stride} + b.stride);
}

template <typename T>
inline bool affine_sub(const Meta& a, const Meta& b, Meta& r) {
  return store_affine<T>(r, a.base - b.base, int64_t{a.stride} - b.stride);
}

/// factor * m.
template <typename T>
inline bool affine_scale(const Meta& m, uint64_t factor, Meta& r) {
  uint64_t stride = static_cast<uint64_t>(int64_t{m.stride}) * factor;
  return store_affine<T>(r, m.base * factor, static_cast<int64_t>(stride));
}

/// a * b, one of which must be uniform.
template <typename T>
inline bool affine_mul(const Meta& a, const Meta& b, Meta& r) {
  if (b.stride == 0) return affine_scale<T>(a, b.base, r);
  if (a.stride == 0) return affine_scale<T>(b, a.base, r);
  return false;
}

/// The slot as a wider integer type, extended as the integer type T is signed.
template <typename Wide, typename T>
inline bool affine_widen(const Meta& m, Meta& r) {
  T first, last;
  if (!affine_ends<T>(m, first, last)) return false;
  return store_affine<Wide>(r, static_cast<uint64_t>(static_cast<Wide>(first)), m.stride);
}

/// Quotient by a uniform divisor, toward zero.
template <typename T>
inline bool affine_divide(const Meta& m, T divisor, Meta& r) {
  T first, last;
  if (divisor <= 0 || !affine_ends<T>(m, first, last)) return false;
  if (first / divisor == last / divisor) {
    return store_affine<T>(r, static_cast<BitsOf<T>>(first / divisor), 0);
  }
  if (first < 0 || last < 0 || m.stride % static_cast<int64_t>(divisor) != 0) return false;
  return store_affine<T>(r, static_cast<BitsOf<T>>(first / divisor),
                         m.stride / static_cast<int64_t>(divisor));
}

/// Remainder by a uniform divisor, with the sign of the dividend.
template <typename T>
inline bool affine_remainder(const Meta& m, T divisor, Meta& r) {
  T first, last;
  if (divisor <= 0 || !affine_ends<T>(m, first, last)) return false;
  T rest = static_cast<T>(first % divisor);
  if (first / divisor == last / divisor) return store_affine<T>(r, to_base(rest), m.stride);
  if (first < 0 || last < 0 || m.stride % static_cast<int64_t>(divisor) != 0) return false;
  return store_affine<T>(r, to_base(rest), 0);
}

/// Right shift by a uniform amount less than the width, rounding down.
template <typename T>
inline bool affine_shift_right(const Meta& m, unsigned bits, Meta& r) {
  T first, last;
  if (!affine_ends<T>(m, first, last)) return false;
  T low = static_cast<T>(first >> bits);
  if (low == static_cast<T>(last >> bits)) return store_affine<T>(r, to_base(low), 0);
  if (bits > 31 || (m.stride & ((int64_t{1} << bits) - 1)) != 0) return false;
  return store_affine<T>(r, to_base(low), int64_t{m.stride} >> bits);
}

/// Bits [0, bits) of the slot, the rest zero, where no lane carries out of them.
template <typename T>
inline bool affine_low_bits(const Meta& m, unsigned bits, Meta& r) {
  if (bits >= 8 * sizeof(T)) {
    r = m;
    return true;
  }
  uint64_t modulus = uint64_t{1} << bits;
  uint64_t base = m.base & (modulus - 1);
  int64_t stride = m.stride;
  if (bits <= 31) stride &= static_cast<int64_t>(modulus - 1);
  // The stride is known modulo 2^bits only; take the representative nearest to zero.
  if (bits <= 31 && stride > static_cast<int64_t>(modulus / 2)) {
    stride -= static_cast<int64_t>(modulus);
  }
  int64_t last = static_cast<int64_t>(base) + stride * (kLanes - 1);
  if (last < 0 || static_cast<uint64_t>(last) >= modulus) return false;
  return store_affine<T>(r, base, stride);
}

/// Bits of the slot that may be one in some lane.
template <typename T>
inline BitsOf<T> affine_possible_bits(const Meta& m) {
  using Bits = BitsOf<T>;
  Bits first, last;
  Bits high = static_cast<Bits>(~Bits{0});
  if (affine_ends<Bits>(m, first, last)) {
    Bits top = first > last ? first : last;
    high = top == 0 ? Bits{0} : static_cast<Bits>(high >> std::countl_zero(top));
  }
  // All lanes are multiples of the largest power of two that divides base and stride.
  uint64_t both = m.base | static_cast<uint64_t>(int64_t{m.stride});
  if (both == 0) return 0;
  return static_cast<Bits>(high & ~((both & -both) - 1));
}

/// Whether a and b compare alike in all lanes: their order is that of the first and last lane.
template <typename T, typename Less>
inline bool affine_order(const Meta& a, const Meta& b, Less less, bool& all) {
  T first_a, last_a, first_b, last_b;
  if (!affine_ends<T>(a, first_a, last_a) || !affine_ends<T>(b, first_b, last_b)) return false;
  all = less(first_a, first_b);
  return all == less(last_a, last_b);
}

}  // namespace cb::sim
