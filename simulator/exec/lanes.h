#pragma once

// How handlers read and write registers. A handler body is written once, as a function of one
// lane's values; these templates run it once for a warp whose operands are uniform, and as a loop
// over 32 lanes, which the compiler vectorises, otherwise.

#include <bit>
#include <cstring>
#include <type_traits>

#include "simulator/exec/context.h"

namespace cb::sim {

/// 16-bit floats travel as their bit patterns.
template <typename T>
using BitsOf = std::conditional_t<
    sizeof(T) == 8, uint64_t,
    std::conditional_t<sizeof(T) == 4, uint32_t,
                       std::conditional_t<sizeof(T) == 2, uint16_t, uint8_t>>>;

template <typename T>
T from_base(uint64_t base) {
  return std::bit_cast<T>(static_cast<BitsOf<T>>(base));
}

template <typename T>
uint64_t to_base(T value) {
  return std::bit_cast<BitsOf<T>>(value);
}

/// Lane `lane` of an affine slot of T's width.
template <typename T>
T affine_lane(const Meta& meta, int lane) {
  uint64_t offset = static_cast<uint64_t>(int64_t{meta.stride}) * static_cast<uint64_t>(lane);
  return from_base<T>(meta.base + offset);
}

/// Writes out all 32 lanes of an affine slot.
template <typename T>
inline void expand(const Meta& meta, T* out) {
  using Bits = BitsOf<T>;
  Bits base = static_cast<Bits>(meta.base);
  Bits stride = static_cast<Bits>(static_cast<int64_t>(meta.stride));
  Bits lanes[kLanes];
  for (int i = 0; i < kLanes; ++i) {
    lanes[i] = static_cast<Bits>(base + static_cast<Bits>(stride * static_cast<Bits>(i)));
  }
  std::memcpy(out, lanes, sizeof lanes);
}

template <typename T>
inline T* vector_of(Context& c, Slot slot) {
  return reinterpret_cast<T*>(c.vectors + size_t{slot.vector} * 64);
}

/// Per-lane access to an operand whose lanes differ, and to one whose lanes are equal.
template <typename T>
struct LaneVector {
  const T* values;
  T operator[](int lane) const { return values[lane]; }
};
template <typename T>
struct LaneScalar {
  T value;
  T operator[](int) const { return value; }
};

/// An operand as an array of 32: the slot's own vector, or its lanes written to `room`.
template <typename T>
inline const T* read_lanes(Context& c, Slot slot, T* room) {
  const Meta& meta = c.meta[slot.index];
  if (meta.is_vector) return vector_of<T>(c, slot);
  expand(meta, room);
  return room;
}

/// Calls `use` with the cheapest view of the operand. `use` is instantiated twice.
template <typename T, typename Use>
inline void with_operand(Context& c, Slot slot, Use&& use) {
  const Meta& meta = c.meta[slot.index];
  if (meta.uniform()) {
    use(LaneScalar<T>{from_base<T>(meta.base)});
    return;
  }
  alignas(64) T room[kLanes];
  use(LaneVector<T>{read_lanes<T>(c, slot, room)});
}

/// Makes the slot a vector so that single lanes can be changed.
template <typename T>
inline T* materialise(Context& c, Slot slot) {
  Meta& meta = c.meta[slot.index];
  T* values = vector_of<T>(c, slot);
  if (!meta.is_vector) {
    expand(meta, values);
    meta.is_vector = 1;
  }
  return values;
}

/// Writes value(lane) to the active lanes.
template <typename T, typename Value>
inline void write_lanes(Context& c, Slot slot, Value&& value) {
  if (c.full) {
    T* values = vector_of<T>(c, slot);
#pragma GCC ivdep
    for (int i = 0; i < kLanes; ++i) values[i] = value(i);
    c.meta[slot.index].is_vector = 1;
    return;
  }
  T* values = materialise<T>(c, slot);
  uint32_t mask = c.mask;
#pragma GCC ivdep
  for (int i = 0; i < kLanes; ++i) {
    T result = value(i);
    values[i] = (mask >> i & 1) != 0 ? result : values[i];
  }
}

/// Writes base + lane * stride to the active lanes. T gives the slot's width; `base` is
/// zero-extended from it.
template <typename T>
inline void write_affine(Context& c, Slot slot, uint64_t base, int32_t stride) {
  Meta& meta = c.meta[slot.index];
  if (c.full) {
    meta = {base, stride, 0};
    return;
  }
  if (!meta.is_vector && meta.base == base && meta.stride == stride) return;
  T* values = materialise<T>(c, slot);
  Meta written{base, stride, 0};
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    values[lane] = affine_lane<T>(written, lane);
  }
}

template <typename T>
inline void write_uniform(Context& c, Slot slot, T value) {
  write_affine<T>(c, slot, to_base(value), 0);
}

/// Sets the active lanes' bits of a predicate from `bits`.
inline void write_predicate(Context& c, uint16_t index, uint32_t bits) {
  uint32_t& predicate = c.predicates[index];
  predicate = (predicate & ~c.mask) | (bits & c.mask);
}

/// Handlers for operations that compute each lane from the same lane of their sources. `F` has a
/// static `D apply(A...)`, and may have `static bool affine(const Meta&..., Meta& result)` that
/// returns false where the result is not affine.
template <typename F, typename... Sources>
concept HasAffineRule = requires(const Meta& m, Meta& r) { F::affine((sizeof(Sources), m)..., r); };

template <typename F, typename D, typename A>
const MicroOp* lane_op1(Context& c, const MicroOp* op) {
  const Meta& a = c.meta[op->a.index];
  if (a.uniform()) {
    write_uniform<D>(c, op->d, F::apply(from_base<A>(a.base)));
    return op + 1;
  }
  if constexpr (HasAffineRule<F, A>) {
    Meta r;
    if (!a.is_vector && F::affine(a, r)) {
      write_affine<D>(c, op->d, r.base, r.stride);
      return op + 1;
    }
  }
  alignas(64) A room[kLanes];
  const A* va = read_lanes<A>(c, op->a, room);
  write_lanes<D>(c, op->d, [=](int i) { return F::apply(va[i]); });
  return op + 1;
}

template <typename F, typename D, typename A, typename B>
const MicroOp* lane_op2(Context& c, const MicroOp* op) {
  const Meta& a = c.meta[op->a.index];
  const Meta& b = c.meta[op->b.index];
  if (a.uniform() && b.uniform()) {
    write_uniform<D>(c, op->d, F::apply(from_base<A>(a.base), from_base<B>(b.base)));
    return op + 1;
  }
  if constexpr (HasAffineRule<F, A, B>) {
    Meta r;
    if ((a.is_vector | b.is_vector) == 0 && F::affine(a, b, r)) {
      write_affine<D>(c, op->d, r.base, r.stride);
      return op + 1;
    }
  }
  with_operand<A>(c, op->a, [&](auto va) {
    with_operand<B>(c, op->b, [&](auto vb) {
      write_lanes<D>(c, op->d, [=](int i) { return F::apply(va[i], vb[i]); });
    });
  });
  return op + 1;
}

template <typename F, typename D, typename A, typename B, typename C>
const MicroOp* lane_op3(Context& c, const MicroOp* op) {
  const Meta& a = c.meta[op->a.index];
  const Meta& b = c.meta[op->b.index];
  const Meta& e = c.meta[op->c.index];
  if (a.uniform() && b.uniform() && e.uniform()) {
    write_uniform<D>(
        c, op->d,
        F::apply(from_base<A>(a.base), from_base<B>(b.base), from_base<C>(e.base)));
    return op + 1;
  }
  if constexpr (HasAffineRule<F, A, B, C>) {
    Meta r;
    if ((a.is_vector | b.is_vector | e.is_vector) == 0 && F::affine(a, b, e, r)) {
      write_affine<D>(c, op->d, r.base, r.stride);
      return op + 1;
    }
  }
  alignas(64) A room_a[kLanes];
  alignas(64) B room_b[kLanes];
  alignas(64) C room_c[kLanes];
  const A* va = read_lanes<A>(c, op->a, room_a);
  const B* vb = read_lanes<B>(c, op->b, room_b);
  const C* vc = read_lanes<C>(c, op->c, room_c);
  write_lanes<D>(c, op->d, [=](int i) { return F::apply(va[i], vb[i], vc[i]); });
  return op + 1;
}

/// The same for comparisons: `F::apply` returns bool, the destination is a predicate.
template <typename F, typename A, typename B>
uint32_t compare_lanes(Context& c, Slot a, Slot b) {
  const Meta& ma = c.meta[a.index];
  const Meta& mb = c.meta[b.index];
  if (ma.uniform() && mb.uniform()) {
    return F::apply(from_base<A>(ma.base), from_base<B>(mb.base)) ? kAllLanes : 0;
  }
  uint32_t bits = 0;
  with_operand<A>(c, a, [&](auto va) {
    with_operand<B>(c, b, [&](auto vb) {
      uint32_t lane_bits = 0;
      for (int i = 0; i < kLanes; ++i) {
        lane_bits |= static_cast<uint32_t>(F::apply(va[i], vb[i])) << i;
      }
      bits = lane_bits;
    });
  });
  return bits;
}

}  // namespace cb::sim
