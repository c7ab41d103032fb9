#pragma once

// Handlers for operations that compute each lane from the same lane of their sources. An
// operation `F` has
//   D apply(A...) const             the value of one lane;
//   bool affine(const Meta&..., Meta& result) const   optional: false where the result is not
//                                   affine or not known to be;
//   explicit F(const MicroOp*)      optional: reads parameters such as MicroOp::immediate;
//   kPerLane = true                 optional: too slow to be computed for lanes that are not
//                                   active, and not worth vectorising.

//
// The path of vectors is a function of its own, so that the cheap forms need no stack frame.

#include <concepts>

#include "simulator/exec/lanes.h"

namespace cb::sim {

/// The source predicate in place kCondition, and the index of the destination in place kPair.
inline uint32_t read_condition(const Context& c, const MicroOp* op) {
  uint32_t negated = (op->immediate >> 48 & 1) != 0 ? kAllLanes : 0;
  return c.predicates[op->immediate >> 32 & 0xffff] ^ negated;
}
inline uint16_t pair_index(const MicroOp* op) { return static_cast<uint16_t>(op->immediate >> 16); }

template <typename F>
F operation_of(const MicroOp* op) {
  if constexpr (std::is_constructible_v<F, const MicroOp*>) {
    return F(op);
  } else {
    return F{};
  }
}

template <typename F>
concept PerLane = F::kPerLane;

template <typename F, typename... Metas>
concept HasAffineRule = requires(const F f, Metas... m, Meta& r) {
  { f.affine(m..., r) } -> std::same_as<bool>;
};

/// Writes value(lane) to the active lanes; F says whether to visit only those.
template <typename F, typename D, typename Value>
inline void write_results(Context& c, Slot slot, Value&& value) {
  if constexpr (PerLane<F>) {
    LaneOutput<D> output(c, slot);
    D* values = output.values();
    for (uint32_t left = c.mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      values[lane] = value(lane);
    }
    output.commit();
  } else {
    write_lanes<D>(c, slot, value);
  }
}

template <typename F, typename D, typename A>
[[gnu::noinline]] const MicroOp* lane_vector1(Context& c, const MicroOp* op) {
  const F f = operation_of<F>(op);
  alignas(64) A room_a[kLanes];
  const A* va = read_lanes<A>(c, op->a, room_a);
  write_results<F, D>(c, op->d, [=](int i) { return f.apply(va[i]); });
  return op + 1;
}

template <typename F, typename D, typename A>
const MicroOp* lane_op1(Context& c, const MicroOp* op) {
  const F f = operation_of<F>(op);
  const Meta& a = c.meta[op->a.index];
  if (a.uniform()) {
    write_uniform<D>(c, op->d, f.apply(from_base<A>(a.base)));
    return op + 1;
  }
  if constexpr (HasAffineRule<F, const Meta&>) {
    Meta r;
    if (!a.is_vector && f.affine(a, r)) {
      write_affine<D>(c, op->d, r.base, r.stride);
      return op + 1;
    }
  }
  return lane_vector1<F, D, A>(c, op);
}

template <typename F, typename D, typename A, typename B>
[[gnu::noinline]] const MicroOp* lane_vector2(Context& c, const MicroOp* op) {
  const F f = operation_of<F>(op);
  alignas(64) A room_a[kLanes];
  alignas(64) B room_b[kLanes];
  const A* va = read_lanes<A>(c, op->a, room_a);
  const B* vb = read_lanes<B>(c, op->b, room_b);
  write_results<F, D>(c, op->d, [=](int i) { return f.apply(va[i], vb[i]); });
  return op + 1;
}

template <typename F, typename D, typename A, typename B>
const MicroOp* lane_op2(Context& c, const MicroOp* op) {
  const F f = operation_of<F>(op);
  const Meta& a = c.meta[op->a.index];
  const Meta& b = c.meta[op->b.index];
  if (a.uniform() && b.uniform()) {
    write_uniform<D>(c, op->d, f.apply(from_base<A>(a.base), from_base<B>(b.base)));
    return op + 1;
  }
  if constexpr (HasAffineRule<F, const Meta&, const Meta&>) {
    Meta r;
    if ((a.is_vector | b.is_vector) == 0 && f.affine(a, b, r)) {
      write_affine<D>(c, op->d, r.base, r.stride);
      return op + 1;
    }
  }
  return lane_vector2<F, D, A, B>(c, op);
}

template <typename F, typename D, typename A, typename B, typename C>
[[gnu::noinline]] const MicroOp* lane_vector3(Context& c, const MicroOp* op) {
  const F f = operation_of<F>(op);
  alignas(64) A room_a[kLanes];
  alignas(64) B room_b[kLanes];
  alignas(64) C room_c[kLanes];
  const A* va = read_lanes<A>(c, op->a, room_a);
  const B* vb = read_lanes<B>(c, op->b, room_b);
  const C* vc = read_lanes<C>(c, op->c, room_c);
  write_results<F, D>(c, op->d, [=](int i) { return f.apply(va[i], vb[i], vc[i]); });
  return op + 1;
}

template <typename F, typename D, typename A, typename B, typename C>
const MicroOp* lane_op3(Context& c, const MicroOp* op) {
  const F f = operation_of<F>(op);
  const Meta& a = c.meta[op->a.index];
  const Meta& b = c.meta[op->b.index];
  const Meta& e = c.meta[op->c.index];
  if (a.uniform() && b.uniform() && e.uniform()) {
    write_uniform<D>(c, op->d,
                     f.apply(from_base<A>(a.base), from_base<B>(b.base), from_base<C>(e.base)));
    return op + 1;
  }
  if constexpr (HasAffineRule<F, const Meta&, const Meta&, const Meta&>) {
    Meta r;
    if ((a.is_vector | b.is_vector | e.is_vector) == 0 && f.affine(a, b, e, r)) {
      write_affine<D>(c, op->d, r.base, r.stride);
      return op + 1;
    }
  }
  return lane_vector3<F, D, A, B, C>(c, op);
}

template <typename F, typename A, typename B>
[[gnu::noinline]] uint32_t compare_vectors(Context& c, Slot a, Slot b) {
  const F f{};
  alignas(64) A room_a[kLanes];
  alignas(64) B room_b[kLanes];
  const A* va = read_lanes<A>(c, a, room_a);
  const B* vb = read_lanes<B>(c, b, room_b);
  return pack_lane_bits([=](int i) { return f.apply(va[i], vb[i]); });
}

/// Bit i: F's bool for lane i. `F::affine(a, b, bool& all)` may say that all lanes agree.
template <typename F, typename A, typename B>
inline uint32_t compare_lanes(Context& c, Slot slot_a, Slot slot_b) {
  const F f{};
  const Meta& a = c.meta[slot_a.index];
  const Meta& b = c.meta[slot_b.index];
  if (a.uniform() && b.uniform()) {
    return f.apply(from_base<A>(a.base), from_base<B>(b.base)) ? kAllLanes : 0;
  }
  if constexpr (requires(bool& all) { f.affine(a, b, all); }) {
    bool all;
    if ((a.is_vector | b.is_vector) == 0 && f.affine(a, b, all)) return all ? kAllLanes : 0;
  }
  return compare_vectors<F, A, B>(c, slot_a, slot_b);
}

}  // namespace cb::sim
