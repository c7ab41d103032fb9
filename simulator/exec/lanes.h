#pragma once

// How handlers read and write registers. A handler body is written once, as a function of one
// lane's values; these templates run it once for a warp whose operands are uniform, and as a loop
// over 32 lanes, which the compiler vectorises, otherwise. Results that only some lanes may take
// are computed for all lanes beside the slot and then blended in, so there is one loop a handler.

#include <bit>
#include <cstring>
#include <type_traits>

#include "simulator/exec/blend.h"
#include "simulator/exec/context.h"

namespace cb::sim {

/// 16-bit floats travel as their bit patterns.
template <typename T>
using BitsOf =
    std::conditional_t<sizeof(T) == 8, uint64_t,
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

/// Makes a slot uniform or affine. One store of the whole: a narrower load that follows soon is
/// then served from it, which it would not be from several stores.
inline void set_affine(Meta& meta, uint64_t base, int32_t stride) {
  typedef uint64_t Pair __attribute__((vector_size(16)));
  Pair pair = {base, static_cast<uint32_t>(stride)};
  std::memcpy(static_cast<void*>(&meta), &pair, sizeof meta);
}

/// Lane `lane` of an affine slot of T's width.
template <typename T>
T affine_lane(const Meta& meta, int lane) {
  uint64_t offset = static_cast<uint64_t>(int64_t{meta.stride}) * static_cast<uint64_t>(lane);
  return from_base<T>(meta.base + offset);
}

/// Writes out all 32 lanes of an affine slot, to an array aligned to 32 bytes.
template <typename T>
inline void expand(const Meta& meta, T* out) {
  using Bits = BitsOf<T>;
  expand_lanes<Bits>(out, static_cast<Bits>(meta.base),
                     static_cast<Bits>(static_cast<int64_t>(meta.stride)));
}

template <typename T>
inline T* vector_of(Context& c, Slot slot) {
  void* values = c.vectors + size_t{slot.vector} * 64;
  return reinterpret_cast<T*>(__builtin_assume_aligned(values, 64));
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

/// Where a handler puts the 32 results of a slot: straight into the slot when all lanes may be
/// overwritten, else beside it. The result of a lane may overwrite the same lane of a source.
template <typename T>
class LaneOutput {
 public:
  LaneOutput(Context& c, Slot slot)
      : c_(c), slot_(slot), values_(c.full ? vector_of<T>(c, slot) : room_) {}

  T* values() { return values_; }

  /// Gives the active lanes their results.
  void commit() {
    if (c_.full) {
      c_.meta[slot_.index].is_vector = 1;
    } else {
      blend(c_, slot_, room_);
    }
  }

 private:
  [[gnu::noinline]] static void blend(Context& c, Slot slot, const T* room) {
    blend_lanes(materialise<T>(c, slot), room, c.mask);
  }

  Context& c_;
  Slot slot_;
  T* values_;
  alignas(64) T room_[kLanes];
};

/// Writes value(lane) to the active lanes.
template <typename T, typename Value>
inline void write_lanes(Context& c, Slot slot, Value&& value) {
  LaneOutput<T> output(c, slot);
  T* values = output.values();
#pragma GCC ivdep
  for (int i = 0; i < kLanes; ++i) values[i] = value(i);
  output.commit();
}

/// The part of write_affine that changes single lanes.
template <typename T>
[[gnu::noinline]] void blend_affine(Context& c, Slot slot, uint64_t base, int32_t stride) {
  Meta written{base, stride, 0};
  T* values = materialise<T>(c, slot);
  if (std::popcount(c.mask) <= 4) {
    for (uint32_t left = c.mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      values[lane] = affine_lane<T>(written, lane);
    }
    return;
  }
  alignas(64) T room[kLanes];
  expand(written, room);
  blend_lanes(values, room, c.mask);
}

/// Writes base + lane * stride to the active lanes. T gives the slot's width; `base` is
/// zero-extended from it.
template <typename T>
[[gnu::always_inline]] inline void write_affine(Context& c, Slot slot, uint64_t base,
                                                int32_t stride) {
  Meta& meta = c.meta[slot.index];
  if (c.full) {
    set_affine(meta, base, stride);
    return;
  }
  if (!meta.is_vector && meta.base == base && meta.stride == stride) return;
  blend_affine<T>(c, slot, base, stride);
}

template <typename T>
inline void write_uniform(Context& c, Slot slot, T value) {
  write_affine<T>(c, slot, to_base(value), 0);
}

/// Copies the active lanes of a slot to another of the same width, keeping the cheap forms.
template <typename T>
inline void copy_slot(Context& c, Slot to, Slot from) {
  const Meta& meta = c.meta[from.index];
  if (!meta.is_vector) {
    write_affine<T>(c, to, meta.base, meta.stride);
    return;
  }
  const T* source = vector_of<T>(c, from);
  write_lanes<T>(c, to, [=](int i) { return source[i]; });
}

/// Sets the active lanes' bits of a predicate from `bits`; the sink 0xffff takes nothing.
inline void write_predicate(Context& c, uint16_t index, uint32_t bits) {
  if (index == 0xffff) return;
  uint32_t& predicate = c.predicates[index];
  predicate = (predicate & ~c.mask) | (bits & c.mask);
}

}  // namespace cb::sim
