// cvt to or from floating-point types, one number at a time. The conversions that kernels use in
// loops have handlers of their own; the rest go through convert_bits.

#include <cmath>
#include <limits>

#include "simulator/exec/alu_types.h"
#include "simulator/exec/convert.h"
#include "simulator/exec/float_rules.h"
#include "simulator/exec/half_math.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;

template <typename D, typename A>
struct IntToFloat {
  D apply(A a) const {
    if constexpr (std::is_same_v<A, uint32_t>) {
      // 2^52 + a, less 2^52, is exact: AVX2 converts signed words only.
      double exact = std::bit_cast<double>(0x4330000000000000 | uint64_t{a}) - 0x1p52;
      return static_cast<D>(exact);
    } else {
      return static_cast<D>(a);
    }
  }
};

template <Rounding rounding, typename T>
T round_integral(T a) {
  switch (rounding) {
    case Rounding::kZero:
      return std::trunc(a);
    case Rounding::kDown:
      return std::floor(a);
    case Rounding::kUp:
      return std::ceil(a);
    default:
      return std::nearbyint(a);
  }
}

/// NaN gives 0; what is out of range the nearest integer. Every conversion made is in range.
template <Rounding rounding>
struct ToS32 {
  int32_t apply(float a) const {
    float value = round_integral<rounding>(a);
    float bounded = value > -0x1p31f ? value : -0x1p31f;
    auto result = static_cast<int32_t>(bounded < 0x1p31f ? bounded : 0.0f);
    result = value >= 0x1p31f ? std::numeric_limits<int32_t>::max() : result;
    return a != a ? 0 : result;
  }
};

template <Rounding rounding>
struct ToU32 {
  uint32_t apply(float a) const {
    float value = round_integral<rounding>(a);
    float bounded = value > 0 ? value : 0.0f;  // also for NaN
    bool upper = bounded >= 0x1p31f;
    float rest = upper ? bounded - 0x1p31f : bounded;
    auto low = static_cast<int32_t>(rest < 0x1p31f ? rest : 0.0f);
    uint32_t result = static_cast<uint32_t>(low) + (upper ? 0x80000000u : 0);
    return bounded >= 0x1p32f ? ~0u : result;
  }
};

template <Rounding rounding, bool ftz>
struct RoundF32 {
  float apply(float a) const {
    return finish_f32<false, false>(round_integral<rounding>(operand_f32<ftz>(a)));
  }
};

struct DoubleToFloat {
  float apply(double a) const { return finish_f32<false, false>(static_cast<float>(a)); }
};
struct FloatToDouble {
  double apply(float a) const {
    double value = static_cast<double>(a);
    return a != a ? std::bit_cast<double>(kF64Format.canonical_nan) : value;
  }
};

struct Bf16ToFloat {
  uint32_t apply(uint16_t a) const { return uint32_t{a} << 16; }
};

const MicroOp* f16_to_f32_op(Context& c, const MicroOp* op) {
  auto widen = [](V8h bits) {
    V8f value = F16::widen(bits);
    return is_nan(value) ? splat(canonical_nan32()) : value;
  };
  const Meta& a = c.meta[op->a.index];
  if (a.uniform()) {
    write_uniform<float>(c, op->d, widen(V8h{static_cast<uint16_t>(a.base)})[0]);
    return op + 1;
  }
  alignas(64) uint16_t room[kLanes];
  const uint16_t* source = read_lanes<uint16_t>(c, op->a, room);
  LaneOutput<float> output(c, op->d);
  for (int i = 0; i < kLanes; i += 8) {
    V8h halves;
    std::memcpy(&halves, source + i, sizeof halves);
    V8f value = widen(halves);
    std::memcpy(output.values() + i, &value, sizeof value);
  }
  output.commit();
  return op + 1;
}

template <typename Format>
const MicroOp* f32_to_half_op(Context& c, const MicroOp* op) {
  const Meta& a = c.meta[op->a.index];
  if (a.uniform()) {
    write_uniform<uint16_t>(c, op->d, Format::narrow(splat(from_base<float>(a.base)))[0]);
    return op + 1;
  }
  alignas(64) float room[kLanes];
  const float* source = read_lanes<float>(c, op->a, room);
  LaneOutput<uint16_t> output(c, op->d);
  for (int i = 0; i < kLanes; i += 8) {
    V8f value;
    std::memcpy(&value, source + i, sizeof value);
    V8h halves = Format::narrow(value);
    std::memcpy(output.values() + i, &halves, sizeof halves);
  }
  output.commit();
  return op + 1;
}

template <template <Rounding> typename F, typename D, typename A>
OpFn rounded_op(Rounding rounding) {
  switch (rounding) {
    case Rounding::kNearest:
      return lane_op1<F<Rounding::kNearest>, D, A>;
    case Rounding::kZero:
      return lane_op1<F<Rounding::kZero>, D, A>;
    case Rounding::kDown:
      return lane_op1<F<Rounding::kDown>, D, A>;
    case Rounding::kUp:
      return lane_op1<F<Rounding::kUp>, D, A>;
    default:
      return nullptr;
  }
}

template <Rounding r>
using ToIntegral = RoundF32<r, false>;
template <Rounding r>
using ToIntegralFtz = RoundF32<r, true>;

template <typename D>
OpFn from_integer(Type source) {
  switch (source) {
    case Type::kU16:
      return lane_op1<IntToFloat<D, uint16_t>, D, uint16_t>;
    case Type::kS16:
      return lane_op1<IntToFloat<D, int16_t>, D, int16_t>;
    case Type::kU32:
      return lane_op1<IntToFloat<D, uint32_t>, D, uint32_t>;
    case Type::kS32:
      return lane_op1<IntToFloat<D, int32_t>, D, int32_t>;
    case Type::kU64:
      return lane_op1<IntToFloat<D, uint64_t>, D, uint64_t>;
    case Type::kS64:
      return lane_op1<IntToFloat<D, int64_t>, D, int64_t>;
    default:
      return nullptr;
  }
}

/// The handler for registers of exactly the types' widths, if this conversion has one.
OpFn special_handler(const ConvertParameters& p) {
  if (p.sat || p.relu || p.finite) return nullptr;
  bool nearest = p.rounding == Rounding::kNearest;
  if (p.to_integral && p.source == Type::kF32) {
    if (p.destination == Type::kF32) {
      return p.ftz ? rounded_op<ToIntegralFtz, float, float>(p.rounding)
                   : rounded_op<ToIntegral, float, float>(p.rounding);
    }
    if (p.ftz) return nullptr;
    if (p.destination == Type::kS32) return rounded_op<ToS32, int32_t, float>(p.rounding);
    if (p.destination == Type::kU32) return rounded_op<ToU32, uint32_t, float>(p.rounding);
    return nullptr;
  }
  if (p.to_integral || p.ftz || !nearest) return nullptr;
  if (is_integer(p.source)) {
    if (p.destination == Type::kF32) return from_integer<float>(p.source);
    return p.destination == Type::kF64 ? from_integer<double>(p.source) : nullptr;
  }
  if (p.destination == Type::kF32) {
    if (p.source == Type::kF16) return f16_to_f32_op;
    if (p.source == Type::kBf16) return lane_op1<Bf16ToFloat, uint32_t, uint16_t>;
    if (p.source == Type::kF64) return lane_op1<DoubleToFloat, float, double>;
    return nullptr;
  }
  if (p.source != Type::kF32) return nullptr;
  if (p.destination == Type::kF16) return f32_to_half_op<F16>;
  if (p.destination == Type::kBf16) return f32_to_half_op<Bf16>;
  return p.destination == Type::kF64 ? lane_op1<FloatToDouble, double, float> : nullptr;
}

bool is_float(Type type) {
  return type == Type::kF16 || type == Type::kBf16 || type == Type::kF32 || type == Type::kF64;
}

struct TakenRounding {
  std::optional<Rounding> to_float;
  std::optional<Rounding> to_integral;
};

TakenRounding take_roundings(AluQuery& query) {
  TakenRounding taken{.to_float = query.take_rounding()};
  if (query.take("rni")) taken.to_integral = Rounding::kNearest;
  if (query.take("rzi")) taken.to_integral = Rounding::kZero;
  if (query.take("rmi")) taken.to_integral = Rounding::kDown;
  if (query.take("rpi")) taken.to_integral = Rounding::kUp;
  return taken;
}

/// What is wrong with the rounding for these types; empty if nothing.
std::string rounding_problem(const TakenRounding& taken, Type destination, Type source) {
  bool loses = is_integer(source) || ptx::bytes_of(destination) < ptx::bytes_of(source) ||
               (destination != source && ptx::bytes_of(destination) == ptx::bytes_of(source));
  if (is_integer(destination)) {
    return taken.to_integral && !taken.to_float ? "" : "one of .rni, .rzi, .rmi, .rpi is required";
  }
  if (taken.to_integral) {
    return destination == source && !taken.to_float ? "" : "an integer rounding is not possible";
  }
  if (loses != taken.to_float.has_value()) {
    return loses ? "one of .rn, .rz, .rm, .rp is required" : "no rounding is possible";
  }
  return "";
}

std::optional<Result<AluSpec>> find_cvt(AluQuery& query) {
  const auto& modifiers = query.instruction().modifiers;
  if (modifiers.size() < 2) return query.refuse_modifiers();
  Type source = query.last_type();
  Type destination = ptx::type_from_name(modifiers[modifiers.size() - 2]);
  auto convertible = [](Type type) { return is_integer(type) || is_float(type); };
  if (!convertible(source) || !convertible(destination)) return query.refuse_modifiers();
  query.take(ptx::name_of(source));
  query.take(ptx::name_of(destination));
  TakenRounding taken = take_roundings(query);
  std::string problem = rounding_problem(taken, destination, source);
  if (!problem.empty()) return query.refuse(problem);
  ConvertParameters p{.source = source, .destination = destination};
  p.to_integral = taken.to_integral.has_value();
  p.rounding = taken.to_integral.value_or(taken.to_float.value_or(Rounding::kNearest));
  bool half_destination = destination == Type::kF16 || destination == Type::kBf16;
  if (half_destination && source == Type::kF32) {
    p.relu = query.take("relu");
    p.finite = query.take("satfinite");
  }
  if (source == Type::kF32 || destination == Type::kF32) p.ftz = query.take("ftz");
  p.sat = query.take("sat");
  Result<ConvertWidths> widths = convert_widths(query, destination, source);
  if (!widths) return tl::unexpected(widths.error());
  AluSpec spec;
  spec.latency_class = AluSpec::Class::kConvert;
  spec.immediate = p.immediate();
  bool exact_widths =
      widths->destination == ptx::bytes_of(destination) && widths->source == ptx::bytes_of(source);
  if (exact_widths) spec.fn = special_handler(p);
  if (spec.fn == nullptr) spec.fn = generic_convert(widths->destination, widths->source);
  return query.finish(spec, {bits_type(widths->destination), bits_type(widths->source)});
}

constexpr AluEntry kEntries[] = {{"cvt", find_cvt}};

}  // namespace

std::span<const AluEntry> convert_entries() { return kEntries; }

}  // namespace cb::sim
