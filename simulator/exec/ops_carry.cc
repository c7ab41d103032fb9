// Extended-precision arithmetic: add.cc, addc, sub.cc, subc, mad.cc and madc, which pass a carry
// or borrow from one instruction to the next through kCarryPredicate, one bit per lane.

#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;

/// A result and what is carried (or borrowed) out of it.
template <typename T>
struct Carried {
  T value;
  bool out;
};

template <typename T>
struct AddCarry {
  static Carried<T> apply(T a, T b, T, bool in) {
    T sum;
    bool first = __builtin_add_overflow(a, b, &sum);
    bool second = __builtin_add_overflow(sum, static_cast<T>(in), &sum);
    return {sum, first || second};
  }
};

template <typename T>
struct SubBorrow {
  static Carried<T> apply(T a, T b, T, bool in) {
    T difference;
    bool first = __builtin_sub_overflow(a, b, &difference);
    bool second = __builtin_sub_overflow(difference, static_cast<T>(in), &difference);
    return {difference, first || second};
  }
};

template <typename T>
struct MadLowCarry {
  static Carried<T> apply(T a, T b, T c, bool in) {
    return AddCarry<T>::apply(static_cast<T>(a * b), c, T{}, in);
  }
};

template <typename T, bool is_signed>
struct MadHighCarry {
  static Carried<T> apply(T a, T b, T c, bool in) {
    using Factor = std::conditional_t<is_signed, std::make_signed_t<T>, T>;
    using Product = std::conditional_t<is_signed, __int128, unsigned __int128>;
    Product product = Product{static_cast<Factor>(a)} * static_cast<Factor>(b);
    return AddCarry<T>::apply(static_cast<T>(product >> (8 * sizeof(T))), c, T{}, in);
  }
};

enum CarryUse : uint8_t { kReads = 1, kWrites = 2 };

template <typename F, typename T, bool has_c>
const MicroOp* carry_op(Context& c, const MicroOp* op) {
  alignas(64) T room_a[kLanes];
  alignas(64) T room_b[kLanes];
  alignas(64) T room_c[kLanes];
  const T* a = read_lanes<T>(c, op->a, room_a);
  const T* b = read_lanes<T>(c, op->b, room_b);
  const T* e = has_c ? read_lanes<T>(c, op->c, room_c) : a;
  uint32_t in = (op->aux & kReads) != 0 ? c.predicates[kCarryPredicate] : 0;
  uint32_t out = 0;
  const Meta& ma = c.meta[op->a.index];
  const Meta& mb = c.meta[op->b.index];
  bool uniform = ma.uniform() && mb.uniform() && (!has_c || c.meta[op->c.index].uniform()) &&
                 ((in & c.mask) == 0 || (in & c.mask) == c.mask);
  if (uniform) {
    Carried<T> result = F::apply(a[0], b[0], e[0], (in & c.mask) != 0);
    write_uniform<T>(c, op->d, result.value);
    out = result.out ? kAllLanes : 0;
  } else {
    LaneOutput<T> output(c, op->d);
    T* values = output.values();
    for (int i = 0; i < kLanes; ++i) {
      Carried<T> result = F::apply(a[i], b[i], e[i], (in >> i & 1) != 0);
      values[i] = result.value;
      out |= uint32_t{result.out} << i;
    }
    output.commit();
  }
  if ((op->aux & kWrites) != 0) write_predicate(c, kCarryPredicate, out);
  return op + 1;
}

template <typename T, bool is_signed>
OpFn mad_handler(AluQuery& query) {
  if (query.take("lo")) return carry_op<MadLowCarry<T>, T, true>;
  return query.take("hi") ? carry_op<MadHighCarry<T, is_signed>, T, true> : nullptr;
}

OpFn handler(AluQuery& query, Type type, bool is_sub, bool is_mad) {
  bool wide = ptx::bytes_of(type) == 8;
  if (is_mad) {
    if (is_signed(type)) {
      return wide ? mad_handler<uint64_t, true>(query) : mad_handler<uint32_t, true>(query);
    }
    return wide ? mad_handler<uint64_t, false>(query) : mad_handler<uint32_t, false>(query);
  }
  if (is_sub) {
    return wide ? carry_op<SubBorrow<uint64_t>, uint64_t, false>
                : carry_op<SubBorrow<uint32_t>, uint32_t, false>;
  }
  return wide ? carry_op<AddCarry<uint64_t>, uint64_t, false>
              : carry_op<AddCarry<uint32_t>, uint32_t, false>;
}

std::optional<Result<AluSpec>> find_carry(AluQuery& query) {
  std::string_view opcode = query.opcode();
  bool reads = opcode == "addc" || opcode == "subc" || opcode == "madc";
  bool writes = query.take("cc");
  if (!reads && !writes) return std::nullopt;
  Type type = query.last_type();
  if (!is_integer(type) || ptx::bytes_of(type) < 4) {
    return query.refuse("the type must be a 32- or 64-bit integer");
  }
  query.take(ptx::name_of(type));
  bool is_mad = opcode.starts_with("mad");
  AluSpec spec;
  spec.fn = handler(query, type, opcode.starts_with("sub"), is_mad);
  spec.aux = static_cast<uint8_t>((reads ? kReads : 0) | (writes ? kWrites : 0));
  spec.reads_carry = reads;
  spec.writes_carry = writes;
  spec.latency_class = is_mad ? Class::kMultiply : Class::kSimple;
  return is_mad ? query.finish(spec, {type, type, type, type})
                : query.finish(spec, {type, type, type});
}

constexpr AluEntry kEntries[] = {
    {"add", find_carry},  {"addc", find_carry}, {"sub", find_carry},
    {"subc", find_carry}, {"mad", find_carry},  {"madc", find_carry},
};

}  // namespace

std::span<const AluEntry> carry_entries() { return kEntries; }

}  // namespace cb::sim
