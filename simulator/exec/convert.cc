// Conversions of one number at a time. A source is decoded to an exact Number, whatever its type,
// and rounded once to the destination's; saturation, flushing and the like are applied around that.
// Between integers without .sat there is nothing to round: bits are cut off or extended.

#include "simulator/exec/convert.h"

#include <fmt/format.h>

#include "simulator/exec/alu_types.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

using ptx::Type;

const NumberFormat* float_format(Type type) {
  switch (type) {
    case Type::kF16:
      return &kF16Format;
    case Type::kBf16:
      return &kBf16Format;
    case Type::kF32:
      return &kF32Format;
    case Type::kF64:
      return &kF64Format;
    default:
      return nullptr;
  }
}

int width_of(Type type) { return static_cast<int>(8 * ptx::bytes_of(type)); }

uint64_t low_bits(uint64_t raw, int bits) { return raw & (~uint64_t{0} >> (64 - bits)); }

uint64_t sign_extended(uint64_t raw, int bits) {
  return static_cast<uint64_t>(static_cast<int64_t>(raw << (64 - bits)) >> (64 - bits));
}

uint64_t extended(uint64_t raw, Type type) {
  int bits = width_of(type);
  return is_signed(type) ? sign_extended(raw, bits) : low_bits(raw, bits);
}

bool is_subnormal(const Number& n, const NumberFormat& format) {
  return n.kind == Number::Kind::kFinite && n.mantissa >> format.mantissa_bits == 0;
}

Number decode(uint64_t raw, const ConvertParameters& p) {
  const NumberFormat* format = float_format(p.source);
  if (format != nullptr) {
    Number n = Number::of_bits(low_bits(raw, width_of(p.source)), *format);
    if (p.ftz && p.source == Type::kF32 && is_subnormal(n, *format)) n.mantissa = 0;
    return n;
  }
  uint64_t value = extended(raw, p.source);
  return is_signed(p.source) ? Number::of_signed(static_cast<int64_t>(value))
                             : Number::of_unsigned(value);
}

uint64_t to_integer(const Number& n, const ConvertParameters& p) {
  int bits = width_of(p.destination);
  bool is_signed = sim::is_signed(p.destination);
  if (n.kind == Number::Kind::kNan) {
    bool zero = p.source != Type::kF64 && bits < 64;
    return zero ? 0 : uint64_t{1} << (bits - 1);
  }
  if (n.kind == Number::Kind::kInfinite) {
    Number huge{.negative = n.negative, .exponent = 64, .mantissa = 1};
    return round_to_integer(huge, Rounding::kZero, bits, is_signed);
  }
  return round_to_integer(n, p.rounding, bits, is_signed);
}

/// The whole number next to a finite one, with its sign.
Number integral(const Number& n, Rounding rounding) {
  if (n.kind != Number::Kind::kFinite || n.exponent >= 0) return n;
  Number magnitude = n;
  uint64_t pattern = round_to_integer(magnitude, rounding, 64, true);
  return {.negative = n.negative, .mantissa = n.negative ? -pattern : pattern};
}

uint64_t to_float(Number n, const ConvertParameters& p, const NumberFormat& format) {
  if (p.to_integral) n = integral(n, p.rounding);
  bool nan = n.kind == Number::Kind::kNan;
  if (p.sat && (nan || n.negative)) return 0;
  if (p.relu && !nan && n.negative) return 0;
  uint64_t bits = round_to_format(n, format, p.rounding, p.finite);
  uint64_t one = static_cast<uint64_t>(format.bias()) << format.mantissa_bits;
  if (p.sat) bits = std::min(bits, one);
  bool flushes = p.ftz && p.destination == Type::kF32;
  if (flushes && (bits & format.infinity()) == 0) bits &= format.sign_bit();
  return bits;
}

template <typename D, typename S>
const MicroOp* generic_op(Context& c, const MicroOp* op) {
  ConvertParameters parameters = ConvertParameters::of(op);
  const Meta& source = c.meta[op->a.index];
  if (source.uniform()) {
    write_uniform<D>(c, op->d, static_cast<D>(convert_bits(source.base, parameters)));
    return op + 1;
  }
  alignas(64) S room[kLanes];
  const S* values = read_lanes<S>(c, op->a, room);
  LaneOutput<D> output(c, op->d);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    output.values()[lane] = static_cast<D>(convert_bits(values[lane], parameters));
  }
  output.commit();
  return op + 1;
}

template <typename D>
OpFn generic_to(unsigned source_bytes) {
  switch (source_bytes) {
    case 1:
      return generic_op<D, uint8_t>;
    case 2:
      return generic_op<D, uint16_t>;
    case 4:
      return generic_op<D, uint32_t>;
    case 8:
      return generic_op<D, uint64_t>;
    default:
      return nullptr;
  }
}

}  // namespace

uint64_t convert_bits(uint64_t raw, const ConvertParameters& p) {
  bool integers = is_integer(p.source) && is_integer(p.destination);
  if (integers && !p.sat) return extended(extended(raw, p.source), p.destination);
  Number n = decode(raw, p);
  const NumberFormat* format = float_format(p.destination);
  return format != nullptr ? to_float(n, p, *format) : to_integer(n, p);
}

OpFn generic_convert(unsigned destination_bytes, unsigned source_bytes) {
  switch (destination_bytes) {
    case 1:
      return generic_to<uint8_t>(source_bytes);
    case 2:
      return generic_to<uint16_t>(source_bytes);
    case 4:
      return generic_to<uint32_t>(source_bytes);
    case 8:
      return generic_to<uint64_t>(source_bytes);
    default:
      return nullptr;
  }
}

Result<ConvertWidths> convert_widths(const AluQuery& query, Type destination, Type source) {
  ConvertWidths widths;
  widths.destination = ptx::bytes_of(query.register_type(0));
  widths.source = ptx::bytes_of(query.register_type(1));
  // A constant is read as the source type.
  if (widths.source == 0) widths.source = ptx::bytes_of(source);
  if (widths.destination < ptx::bytes_of(destination) || widths.source < ptx::bytes_of(source)) {
    return query.refuse(fmt::format("registers of {} and {} bytes are narrower than the types",
                                    widths.destination, widths.source));
  }
  return widths;
}

Type bits_type(unsigned bytes) {
  switch (bytes) {
    case 1:
      return Type::kB8;
    case 2:
      return Type::kB16;
    case 4:
      return Type::kB32;
    default:
      return Type::kB64;
  }
}

}  // namespace cb::sim
