// The forms of cvt with packed or narrow formats: two f32 to f16x2 or bf16x2, the 8-bit floats
// e4m3x2 and e5m2x2 to and from f32 and f16x2, tf32, and cvt.pack of integers.

#include <algorithm>
#include <bit>

#include "simulator/exec/convert.h"
#include "simulator/exec/half_math.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;

/// f32 to an 8-bit float, to nearest, saturating to the largest number. Branch-free.
template <int mantissa_bits, int bias, uint32_t largest>
struct Float8 {
  static constexpr int kDropped = 23 - mantissa_bits;

  static uint32_t narrow(float value, bool relu) {
    uint32_t bits = std::bit_cast<uint32_t>(value);
    uint32_t magnitude = bits & 0x7fffffff;
    uint32_t sign = bits >> 24 & 0x80;
    // Normal results: rounds the mantissa, which may carry into the exponent.
    uint32_t rounded = magnitude + ((1u << (kDropped - 1)) - 1) + (magnitude >> kDropped & 1);
    uint32_t normal = (rounded >> kDropped) - ((127u - bias) << mantissa_bits);
    // Subnormal results: adding 2^23 units makes the f32 addition round to a whole unit.
    constexpr float kShift = std::bit_cast<float>((127u + 23 + 1 - bias - mantissa_bits) << 23);
    float shifted = std::bit_cast<float>(magnitude) + kShift;
    uint32_t subnormal = std::bit_cast<uint32_t>(shifted) - std::bit_cast<uint32_t>(kShift);
    constexpr uint32_t kSmallestNormal = (128u - bias) << 23;
    uint32_t result = magnitude < kSmallestNormal ? subnormal : normal;
    result = result > largest ? largest : result;
    result |= sign;
    if (relu) result = sign != 0 ? 0 : result;
    return magnitude > 0x7f800000 ? 0x7f : result;
  }
};

struct E4m3 : Float8<3, 7, 0x7e> {
  /// An e4m3 number is a normal f16 number or zero.
  static uint32_t widen(uint32_t byte) {
    float subnormal = static_cast<float>(static_cast<int32_t>(byte & 7)) * 0x1p-9f;
    uint32_t normal = ((byte & 0x7f) << 20) + (120u << 23);
    uint32_t bits = (byte & 0x78) == 0 ? std::bit_cast<uint32_t>(subnormal) : normal;
    uint32_t half = (bits >> 13) - (112u << 10);
    half = (byte & 0x7f) == 0 ? 0 : half;
    half |= (byte & 0x80) << 8;
    return (byte & 0x7f) == 0x7f ? 0x7fff : half;
  }
};

struct E5m2 : Float8<2, 15, 0x7b> {
  static uint32_t widen(uint32_t byte) { return (byte & 0x7f) > 0x7c ? 0x7fff : byte << 8; }
};

/// An f16 pattern as f32.
inline float widen_f16(uint32_t half) {
  uint32_t magnitude = half & 0x7fff;
  float subnormal = static_cast<float>(static_cast<int32_t>(magnitude)) * 0x1p-24f;
  uint32_t normal = (magnitude << 13) + (112u << 23);
  uint32_t bits = magnitude < 0x0400 ? std::bit_cast<uint32_t>(subnormal) : normal;
  bits = magnitude >= 0x7c00 ? 0x7f800000 | magnitude << 13 : bits;
  return std::bit_cast<float>(bits | (half & 0x8000) << 16);
}

template <typename Format, bool relu>
struct Pack8FromF32 {
  uint16_t apply(float a, float b) const {
    return static_cast<uint16_t>(Format::narrow(a, relu) << 8 | Format::narrow(b, relu));
  }
};
template <typename Format, bool relu>
struct Pack8FromF16 {
  uint16_t apply(uint32_t a) const {
    uint32_t high = Format::narrow(widen_f16(a >> 16), relu);
    return static_cast<uint16_t>(high << 8 | Format::narrow(widen_f16(a & 0xffff), relu));
  }
};
template <typename Format, bool relu>
struct Unpack8 {
  static uint32_t half(uint32_t byte) {
    uint32_t bits = Format::widen(byte);
    return relu && (bits & 0x8000) != 0 ? 0 : bits;
  }
  uint32_t apply(uint16_t a) const { return half(a >> 8) << 16 | half(a & 0xff); }
};

/// Two f32 to packed halves: the first source is the upper half.
template <typename Format>
const MicroOp* pack_halves_op(Context& c, const MicroOp* op) {
  const Meta& a = c.meta[op->a.index];
  const Meta& b = c.meta[op->b.index];
  if (a.uniform() && b.uniform()) {
    V8h result = Format::narrow(V8f{from_base<float>(b.base), from_base<float>(a.base)});
    write_uniform<uint32_t>(c, op->d, result[0] | uint32_t{result[1]} << 16);
    return op + 1;
  }
  alignas(64) float room[2][kLanes];
  const float* va = read_lanes<float>(c, op->a, room[0]);
  const float* vb = read_lanes<float>(c, op->b, room[1]);
  LaneOutput<uint32_t> output(c, op->d);
  for (int i = 0; i < kLanes; i += 8) {
    V8f high, low;
    std::memcpy(&high, va + i, sizeof high);
    std::memcpy(&low, vb + i, sizeof low);
    V8u packed = extended(Format::narrow(high)) << 16 | extended(Format::narrow(low));
    std::memcpy(output.values() + i, &packed, sizeof packed);
  }
  output.commit();
  return op + 1;
}

/// The same with other roundings and clamps, which the parameters say; they name a half type.
struct PackHalves {
  static constexpr bool kPerLane = true;
  ConvertParameters parameters;
  explicit PackHalves(const MicroOp* op) : parameters(ConvertParameters::of(op)) {}
  uint32_t apply(uint32_t a, uint32_t b) const {
    return static_cast<uint32_t>(convert_bits(a, parameters) << 16 | convert_bits(b, parameters));
  }
};

/// tf32 is f32 with 13 bits of the mantissa zero.
struct ToTf32 {
  static constexpr bool kPerLane = true;
  ConvertParameters parameters;
  explicit ToTf32(const MicroOp* op) : parameters(ConvertParameters::of(op)) {}
  uint32_t apply(uint32_t a) const {
    Number n = Number::of_bits(a, kF32Format);
    if (n.kind == Number::Kind::kNan) return static_cast<uint32_t>(kF32Format.canonical_nan);
    if (parameters.relu && n.negative) return 0;
    uint64_t bits = round_to_format(n, kTf32Format, parameters.rounding, parameters.finite);
    return static_cast<uint32_t>(bits << 13);
  }
};

struct PackIntegers {
  int32_t min, max;
  uint32_t bits;
  /// MicroOp::aux: the bits of each integer, and 0x80 if they are signed.
  explicit PackIntegers(const MicroOp* op) : bits(op->aux & 0x1f) {
    bool is_signed = (op->aux & 0x80) != 0;
    min = is_signed ? -(1 << (bits - 1)) : 0;
    max = (1 << (is_signed ? bits - 1 : bits)) - 1;
  }
  uint32_t clamp(int32_t value) const {
    return static_cast<uint32_t>(std::clamp(value, min, max)) & ((1u << bits) - 1);
  }
  uint32_t apply(int32_t a, int32_t b) const { return clamp(a) << bits | clamp(b); }
  uint32_t apply(int32_t a, int32_t b, uint32_t c) const { return c << (2 * bits) | apply(a, b); }
};

std::optional<Result<AluSpec>> find_pack(AluQuery& query) {
  if (!query.take("pack")) return std::nullopt;
  if (!query.take("sat")) return query.refuse("the modifier .sat is required");
  std::string_view name = query.next();
  constexpr std::string_view kNames[] = {"u2", "s2", "u4", "s4", "u8", "s8", "u16", "s16"};
  if (std::find(std::begin(kNames), std::end(kNames), name) == std::end(kNames)) {
    return query.refuse_modifiers();
  }
  query.take(name);
  uint8_t bits = name.ends_with("16") ? 16 : static_cast<uint8_t>(name[1] - '0');
  AluSpec spec;
  spec.aux = static_cast<uint8_t>(bits | (name[0] == 's' ? 0x80 : 0));
  spec.latency_class = Class::kConvert;
  if (!query.take("s32")) return query.refuse_modifiers();
  if (bits == 16) {
    spec.fn = lane_op2<PackIntegers, uint32_t, int32_t, int32_t>;
    return query.finish(spec, {Type::kB32, Type::kS32, Type::kS32});
  }
  if (!query.take("b32")) return query.refuse("a third type, .b32, is required");
  spec.fn = lane_op3<PackIntegers, uint32_t, int32_t, int32_t, uint32_t>;
  return query.finish(spec, {Type::kB32, Type::kS32, Type::kS32, Type::kB32});
}

std::optional<Result<AluSpec>> find_packed_halves(AluQuery& query) {
  bool bf16 = query.has("bf16x2");
  if (!query.has("f32") || (!bf16 && !query.has("f16x2")) || query.has("rs")) return std::nullopt;
  query.take(bf16 ? "bf16x2" : "f16x2");
  query.take("f32");
  std::optional<Rounding> rounding = query.take_rounding();
  if (!rounding || *rounding == Rounding::kDown || *rounding == Rounding::kUp) {
    return query.refuse("the rounding must be .rn or .rz");
  }
  ConvertParameters p{.source = Type::kF32, .destination = bf16 ? Type::kBf16 : Type::kF16};
  p.rounding = *rounding;
  p.relu = query.take("relu");
  p.finite = query.take("satfinite");
  AluSpec spec;
  spec.latency_class = Class::kConvert;
  spec.immediate = p.immediate();
  if (p.relu || p.finite || p.rounding != Rounding::kNearest) {
    spec.fn = lane_op2<PackHalves, uint32_t, uint32_t, uint32_t>;
  } else {
    spec.fn = bf16 ? pack_halves_op<Bf16> : pack_halves_op<F16>;
  }
  return query.finish(spec, {Type::kB32, Type::kF32, Type::kF32});
}

std::optional<Result<AluSpec>> find_tf32(AluQuery& query) {
  if (!query.take("tf32")) return std::nullopt;
  AluSpec spec;
  spec.latency_class = Class::kConvert;
  ConvertParameters p;
  if (query.take("rna")) {
    p.rounding = Rounding::kNearestAway;
    p.finite = query.take("satfinite");
  } else if (auto rounding = query.take_rounding();
             rounding == Rounding::kNearest || rounding == Rounding::kZero) {
    p.rounding = *rounding;
    p.relu = query.take("relu");
  } else {
    return query.refuse("the rounding must be .rna, .rn or .rz");
  }
  if (!query.take("f32")) return query.refuse_modifiers();
  spec.fn = lane_op1<ToTf32, uint32_t, uint32_t>;
  spec.immediate = p.immediate();
  return query.finish(spec, {Type::kB32, Type::kF32});
}

template <typename Format, bool relu>
std::optional<Result<AluSpec>> finish_float8(AluQuery& query, bool is_source) {
  AluSpec spec;
  spec.latency_class = Class::kConvert;
  if (is_source) {
    if (!query.take("f16x2")) return query.refuse_modifiers();
    spec.fn = lane_op1<Unpack8<Format, relu>, uint32_t, uint16_t>;
    return query.finish(spec, {Type::kB32, Type::kB16});
  }
  if (!query.take("satfinite")) return query.refuse("the modifier .satfinite is required");
  if (query.take("f32")) {
    spec.fn = lane_op2<Pack8FromF32<Format, relu>, uint16_t, float, float>;
    return query.finish(spec, {Type::kB16, Type::kF32, Type::kF32});
  }
  if (query.take("f16x2")) spec.fn = lane_op1<Pack8FromF16<Format, relu>, uint16_t, uint32_t>;
  return query.finish(spec, {Type::kB16, Type::kB32});
}

std::optional<Result<AluSpec>> find_float8(AluQuery& query) {
  bool e4m3 = query.has("e4m3x2");
  if (!e4m3 && !query.has("e5m2x2")) return std::nullopt;
  std::string_view last = query.instruction().modifiers.back();
  bool is_source = last == "e4m3x2" || last == "e5m2x2";
  query.take(e4m3 ? "e4m3x2" : "e5m2x2");
  if (!query.take("rn")) return query.refuse("the rounding must be .rn");
  bool relu = query.take("relu");
  if (e4m3) {
    return relu ? finish_float8<E4m3, true>(query, is_source)
                : finish_float8<E4m3, false>(query, is_source);
  }
  return relu ? finish_float8<E5m2, true>(query, is_source)
              : finish_float8<E5m2, false>(query, is_source);
}

constexpr AluEntry kEntries[] = {
    {"cvt", find_pack},
    {"cvt", find_float8},
    {"cvt", find_packed_halves},
    {"cvt", find_tf32},
};

}  // namespace

std::span<const AluEntry> convert_packed_entries() { return kEntries; }

}  // namespace cb::sim
