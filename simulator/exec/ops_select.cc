// selp, which selects by a predicate, and slct, which selects by the sign of a number.

#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/float_rules.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;

bool same_lanes(const Meta& a, const Meta& b) {
  return (a.is_vector | b.is_vector) == 0 && a.base == b.base && a.stride == b.stride;
}

/// d = bit of `chosen` ? a : b, for each lane.
template <typename T>
void select_lanes(Context& c, Slot d, Slot a, Slot b, uint32_t chosen) {
  chosen &= c.mask;
  if (chosen == c.mask || same_lanes(c.meta[a.index], c.meta[b.index])) {
    copy_slot<T>(c, d, a);
    return;
  }
  if (chosen == 0) {
    copy_slot<T>(c, d, b);
    return;
  }
  alignas(64) T room_a[kLanes];
  alignas(64) T room_b[kLanes];
  const T* va = read_lanes<T>(c, a, room_a);
  const T* vb = read_lanes<T>(c, b, room_b);
  LaneOutput<T> output(c, d);
  mix_lanes(output.values(), va, vb, chosen);
  output.commit();
}

template <typename T>
const MicroOp* selp_op(Context& c, const MicroOp* op) {
  select_lanes<T>(c, op->d, op->a, op->b, read_condition(c, op));
  return op + 1;
}

bool selects_first(int32_t value, bool) { return value >= 0; }
bool selects_first(float value, bool ftz) { return (ftz ? flush(value) : value) >= 0; }

template <typename T, typename C, bool ftz>
const MicroOp* slct_op(Context& c, const MicroOp* op) {
  alignas(64) C room[kLanes];
  const C* value = read_lanes<C>(c, op->c, room);
  uint32_t chosen = pack_lane_bits([=](int i) { return selects_first(value[i], ftz); });
  select_lanes<T>(c, op->d, op->a, op->b, chosen);
  return op + 1;
}

bool selectable(Type type) {
  return is_integer(type) || is_bits(type) || type == Type::kF32 || type == Type::kF64;
}

std::optional<Result<AluSpec>> find_selp(AluQuery& query) {
  Type type = query.take_type();
  AluSpec spec;
  if (selectable(type)) {
    spec.fn =
        for_width(type, [](auto tag) -> OpFn { return selp_op<typename decltype(tag)::type>; });
  }
  add_operand(spec, 0, AluPlace::kD, type, true);
  add_operand(spec, 1, AluPlace::kA, type);
  add_operand(spec, 2, AluPlace::kB, type);
  add_operand(spec, 3, AluPlace::kCondition, Type::kPred);
  return query.finish(spec, 4);
}

std::optional<Result<AluSpec>> find_slct(AluQuery& query) {
  bool ftz = query.take("ftz");
  Type type = query.take_type(), by = query.take_type();
  AluSpec spec;
  if (selectable(type) && (by == Type::kF32 || (by == Type::kS32 && !ftz))) {
    spec.fn = for_width(type, [&](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      if (by == Type::kS32) return slct_op<T, int32_t, false>;
      return ftz ? slct_op<T, float, true> : slct_op<T, float, false>;
    });
  }
  return query.finish(spec, {type, type, type, by});
}

constexpr AluEntry kEntries[] = {{"selp", find_selp}, {"slct", find_slct}};

}  // namespace

std::span<const AluEntry> select_entries() { return kEntries; }

}  // namespace cb::sim
