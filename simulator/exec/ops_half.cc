// Arithmetic on .f16, .bf16 and their packed pairs. A packed pair is two numbers side by side, so a
// warp's operand is 32 or 64 numbers in a row, which are computed eight at a time; a uniform one is
// a single group of eight of which one or two count.

#include <cmath>

#include "simulator/exec/alu_query.h"
#include "simulator/exec/elementary.h"
#include "simulator/exec/half_math.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;

enum class Clamp : uint8_t { kNone, kSat, kRelu };

template <Clamp clamp>
V8f clamped(V8f v) {
  if constexpr (clamp == Clamp::kSat) return saturate8(v);
  if constexpr (clamp == Clamp::kRelu) return (v > 0) | is_nan(v) ? v : V8f{};
  return v;
}

/// An operation computed in f32; `Math::compute` gives the rounded patterns. `Group` is how many
/// numbers an operation takes at a time.
template <typename Format, typename Math, bool ftz>
struct Arithmetic {
  using Group = V8h;
  static V8f operand(V8h bits) { return Format::widen(ftz ? flush_f16(bits) : bits); }
  static V8h run(V8h a, V8h b, V8h c) {
    V8h result = Math::compute(operand(a), operand(b), operand(c));
    return ftz ? flush_f16(result) : result;
  }
};

template <typename Format, Clamp clamp>
struct Add {
  static V8h compute(V8f a, V8f b, V8f) { return Format::narrow(clamped<clamp>(a + b)); }
};
template <typename Format, Clamp clamp>
struct Sub {
  static V8h compute(V8f a, V8f b, V8f) { return Format::narrow(clamped<clamp>(a - b)); }
};

template <typename Format, Clamp clamp>
struct Mul {
  static V8h compute(V8f a, V8f b, V8f) { return Format::narrow(clamped<clamp>(a * b)); }
};

template <typename Format, Clamp clamp>
struct Fma {
  static V8h compute(V8f a, V8f b, V8f c) {
    V8h result = narrow_fma<Format>(fma8(a, b, c), a, b, c);
    if constexpr (clamp == Clamp::kNone) return result;
    return Format::narrow(clamped<clamp>(Format::widen(result)));
  }
};

template <typename Format, bool negate, bool ftz>
struct Sign {
  using Group = V16h;
  static V16h run(V16h a, V16h, V16h) {
    if constexpr (ftz) a = flush_f16(a);
    V16h bits = negate ? a ^ 0x8000 : a & 0x7fff;
    return (a & 0x7fff) > Format::kInfinity ? V16h{} + Format::kNan : bits;
  }
};

template <typename Format, bool is_max, bool ftz, bool nan, bool xorsign>
struct MinMax {
  using Group = V16h;
  typedef int16_t Order __attribute__((vector_size(32)));

  static V16h run(V16h a, V16h b, V16h) {
    V16h sign = (a ^ b) & 0x8000;
    if constexpr (ftz) {
      a = flush_f16(a);
      b = flush_f16(b);
    }
    if constexpr (xorsign) {
      a &= 0x7fff;
      b &= 0x7fff;
    }
    Order a_nan = (a & 0x7fff) > Format::kInfinity;
    Order b_nan = (b & 0x7fff) > Format::kInfinity;
    Order a_less = order(a) < order(b);
    V16h result = (is_max ? ~a_less : a_less) ? a : b;
    result = a_nan ? b : result;
    result = b_nan ? a : result;
    if constexpr (xorsign) result |= sign;
    return (nan ? a_nan | b_nan : a_nan & b_nan) ? V16h{} + Format::kNan : result;
  }
  /// Sign and magnitude as a signed number: -0 comes right before +0.
  static Order order(V16h bits) {
    Order number = reinterpret_cast<Order>(bits);
    return number < 0 ? ~(number & 0x7fff) : number;
  }
};

template <typename Format, float (*function)(float), bool ftz>
struct Function {
  using Group = V8h;
  static V8h run(V8h a, V8h, V8h) {
    V8f operand = Format::widen(a);
    if constexpr (ftz) operand = flush8(operand);
    V8f result;
    for (int i = 0; i < 8; ++i) result[i] = function(operand[i]);
    return Format::narrow(ftz ? flush8(result) : result);
  }
  static V8f flush8(V8f v) {
    V8u bits = reinterpret_cast<V8u>(v);
    return reinterpret_cast<V8f>((bits & 0x7f800000) == 0 ? bits & 0x80000000 : bits);
  }
};

/// T is uint16_t, or uint32_t for pairs. Slots that `Op` has no use for may be anything.
template <typename Op, typename T, int kSources>
[[gnu::noinline]] const MicroOp* half_vector(Context& c, const MicroOp* op) {
  using Group = typename Op::Group;
  alignas(64) T room[3][kLanes];
  const T* a = read_lanes<T>(c, op->a, room[0]);
  const T* b = kSources > 1 ? read_lanes<T>(c, op->b, room[1]) : a;
  const T* e = kSources > 2 ? read_lanes<T>(c, op->c, room[2]) : a;
  LaneOutput<T> output(c, op->d);
  constexpr size_t kStep = sizeof(Group) / sizeof(T);
  for (size_t i = 0; i < kLanes; i += kStep) {
    Group x, y, z;
    std::memcpy(&x, a + i, sizeof x);
    std::memcpy(&y, b + i, sizeof y);
    std::memcpy(&z, e + i, sizeof z);
    Group result = Op::run(x, y, z);
    std::memcpy(output.values() + i, &result, sizeof result);
  }
  output.commit();
  return op + 1;
}

template <typename Op, typename T, int kSources>
const MicroOp* half_op(Context& c, const MicroOp* op) {
  const Meta& ma = c.meta[op->a.index];
  const Meta& mb = c.meta[(kSources > 1 ? op->b : op->a).index];
  const Meta& mc = c.meta[(kSources > 2 ? op->c : op->a).index];
  if (ma.uniform() && mb.uniform() && mc.uniform()) {
    using Group = typename Op::Group;
    auto pair = [](const Meta& m) {
      return Group{static_cast<uint16_t>(m.base), static_cast<uint16_t>(m.base >> 16)};
    };
    Group result = Op::run(pair(ma), pair(mb), pair(mc));
    write_uniform<T>(c, op->d, static_cast<T>(result[0] | uint32_t{result[1]} << 16));
    return op + 1;
  }
  return half_vector<Op, T, kSources>(c, op);
}

/// The 16-bit type of an instruction: which format, and whether in pairs.
struct HalfType {
  bool bf16 = false;
  bool packed = false;
  Type type() const { return packed ? Type::kB32 : Type::kB16; }
};

std::optional<HalfType> take_half(AluQuery& query) {
  switch (query.last_type()) {
    case Type::kF16:
    case Type::kF16x2:
    case Type::kBf16:
    case Type::kBf16x2:
      break;
    default:
      return std::nullopt;
  }
  Type type = query.last_type();
  query.take(ptx::name_of(type));
  return HalfType{type == Type::kBf16 || type == Type::kBf16x2,
                  type == Type::kF16x2 || type == Type::kBf16x2};
}

template <typename Op, int kSources>
OpFn op_for(HalfType half) {
  return half.packed ? half_op<Op, uint32_t, kSources> : half_op<Op, uint16_t, kSources>;
}

template <template <typename, Clamp> typename Math, Clamp clamp, int kSources>
OpFn arithmetic_op(HalfType half, bool ftz) {
  if (half.bf16) return op_for<Arithmetic<Bf16, Math<Bf16, clamp>, false>, kSources>(half);
  return ftz ? op_for<Arithmetic<F16, Math<F16, clamp>, true>, kSources>(half)
             : op_for<Arithmetic<F16, Math<F16, clamp>, false>, kSources>(half);
}

template <template <typename, Clamp> typename Math, int kSources>
std::optional<Result<AluSpec>> find_arithmetic(AluQuery& query) {
  std::optional<HalfType> half = take_half(query);
  if (!half) return std::nullopt;
  bool rounds = query.take("rn");
  if (!rounds && kSources == 3) return query.refuse("the rounding modifier .rn is required");
  bool ftz = !half->bf16 && query.take("ftz");
  AluSpec spec;
  if (!half->bf16 && query.take("sat")) {
    spec.fn = arithmetic_op<Math, Clamp::kSat, kSources>(*half, ftz);
  } else if (kSources == 3 && query.take("relu")) {
    if constexpr (kSources == 3) spec.fn = arithmetic_op<Math, Clamp::kRelu, 3>(*half, ftz);
  } else {
    spec.fn = arithmetic_op<Math, Clamp::kNone, kSources>(*half, ftz);
  }
  Type type = half->type();
  return kSources == 3 ? query.finish(spec, {type, type, type, type})
                       : query.finish(spec, {type, type, type});
}

template <bool negate>
std::optional<Result<AluSpec>> find_sign(AluQuery& query) {
  std::optional<HalfType> half = take_half(query);
  if (!half) return std::nullopt;
  AluSpec spec;
  if (half->bf16) {
    spec.fn = op_for<Sign<Bf16, negate, false>, 1>(*half);
  } else if (query.take("ftz")) {
    spec.fn = op_for<Sign<F16, negate, true>, 1>(*half);
  } else {
    spec.fn = op_for<Sign<F16, negate, false>, 1>(*half);
  }
  return query.finish(spec, {half->type(), half->type()});
}

template <typename Format, bool is_max, bool ftz>
OpFn min_max_op(HalfType half, bool nan, bool xorsign) {
  if (nan) {
    return xorsign ? op_for<MinMax<Format, is_max, ftz, true, true>, 2>(half)
                   : op_for<MinMax<Format, is_max, ftz, true, false>, 2>(half);
  }
  return xorsign ? op_for<MinMax<Format, is_max, ftz, false, true>, 2>(half)
                 : op_for<MinMax<Format, is_max, ftz, false, false>, 2>(half);
}

template <bool is_max>
std::optional<Result<AluSpec>> find_min_max(AluQuery& query) {
  std::optional<HalfType> half = take_half(query);
  if (!half) return std::nullopt;
  bool ftz = !half->bf16 && query.take("ftz"), nan = query.take("NaN");
  bool xorsign = query.has("xorsign") && query.has("abs");
  if (xorsign) {
    query.take("xorsign");
    query.take("abs");
  }
  AluSpec spec;
  if (half->bf16) {
    spec.fn = min_max_op<Bf16, is_max, false>(*half, nan, xorsign);
  } else {
    spec.fn = ftz ? min_max_op<F16, is_max, true>(*half, nan, xorsign)
                  : min_max_op<F16, is_max, false>(*half, nan, xorsign);
  }
  return query.finish(spec, {half->type(), half->type(), half->type()});
}

/// ex2.approx.f16 and ex2.approx.ftz.bf16, tanh.approx of both.
std::optional<Result<AluSpec>> find_function(AluQuery& query) {
  std::optional<HalfType> half = take_half(query);
  if (!half) return std::nullopt;
  AluSpec spec;
  spec.latency_class = Class::kSpecialFunction;
  if (query.take("approx")) {
    if (query.opcode() == "tanh") {
      spec.fn = half->bf16 ? op_for<Function<Bf16, tanh_f32, false>, 1>(*half)
                           : op_for<Function<F16, tanh_f32, false>, 1>(*half);
    } else if (!half->bf16) {
      spec.fn = op_for<Function<F16, exp2_f32, false>, 1>(*half);
    } else if (query.take("ftz")) {
      spec.fn = op_for<Function<Bf16, exp2_f32, true>, 1>(*half);
    }
  }
  return query.finish(spec, {half->type(), half->type()});
}

constexpr AluEntry kEntries[] = {
    {"add", find_arithmetic<Add, 2>}, {"sub", find_arithmetic<Sub, 2>},
    {"mul", find_arithmetic<Mul, 2>}, {"fma", find_arithmetic<Fma, 3>},
    {"neg", find_sign<true>},         {"abs", find_sign<false>},
    {"min", find_min_max<false>},     {"max", find_min_max<true>},
    {"ex2", find_function},           {"tanh", find_function},
};

}  // namespace

std::span<const AluEntry> half_entries() { return kEntries; }

}  // namespace cb::sim
