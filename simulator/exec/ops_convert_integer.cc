// cvt between integer types. It takes the low bits of a register that may be wider than the source
// type, and extends the result to one that may be wider than the destination type. Nearly always
// that is a truncation, or an extension of the low K bits.

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/convert.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;

template <typename D, typename S>
struct Truncate {
  D apply(S a) const { return static_cast<D>(a); }
  bool affine(const Meta& a, Meta& r) const { return store_affine<D>(r, a.base, a.stride); }
};

/// The low bits of S as a K, extended to D as K is signed.
template <typename D, typename S, typename K>
struct Extend {
  D apply(S a) const { return static_cast<D>(static_cast<K>(a)); }
  bool affine(const Meta& a, Meta& r) const {
    Meta low;
    return store_affine<K>(low, a.base, a.stride) && affine_widen<D, K>(low, r);
  }
};

template <typename D, typename S>
OpFn extend_from(unsigned bytes, bool is_signed) {
  if (bytes >= sizeof(D)) return lane_op1<Truncate<D, S>, D, S>;
  switch (bytes) {
    case 1:
      return is_signed ? lane_op1<Extend<D, S, int8_t>, D, S>
                       : lane_op1<Extend<D, S, uint8_t>, D, S>;
    case 2:
      return is_signed ? lane_op1<Extend<D, S, int16_t>, D, S>
                       : lane_op1<Extend<D, S, uint16_t>, D, S>;
    default:
      return is_signed ? lane_op1<Extend<D, S, int32_t>, D, S>
                       : lane_op1<Extend<D, S, uint32_t>, D, S>;
  }
}

template <typename D>
OpFn extend_to(unsigned source_bytes, unsigned bytes, bool is_signed) {
  switch (source_bytes) {
    case 1:
      return extend_from<D, uint8_t>(bytes, is_signed);
    case 2:
      return extend_from<D, uint16_t>(bytes, is_signed);
    case 4:
      return extend_from<D, uint32_t>(bytes, is_signed);
    case 8:
      return extend_from<D, uint64_t>(bytes, is_signed);
    default:
      return nullptr;
  }
}

/// The low `bytes` of the source register, extended to the destination register.
OpFn extension(ConvertWidths widths, unsigned bytes, bool is_signed) {
  switch (widths.destination) {
    case 1:
      return extend_to<uint8_t>(widths.source, bytes, is_signed);
    case 2:
      return extend_to<uint16_t>(widths.source, bytes, is_signed);
    case 4:
      return extend_to<uint32_t>(widths.source, bytes, is_signed);
    case 8:
      return extend_to<uint64_t>(widths.source, bytes, is_signed);
    default:
      return nullptr;
  }
}

std::optional<Result<AluSpec>> find_cvt(AluQuery& query) {
  const auto& modifiers = query.instruction().modifiers;
  if (modifiers.size() < 2) return query.refuse_modifiers();
  Type source = query.last_type();
  Type destination = ptx::type_from_name(modifiers[modifiers.size() - 2]);
  if (!is_integer(source) || !is_integer(destination)) return std::nullopt;
  query.take(ptx::name_of(source));
  query.take(ptx::name_of(destination));
  Result<ConvertWidths> widths = convert_widths(query, destination, source);
  if (!widths) return tl::unexpected(widths.error());
  AluSpec spec;
  spec.latency_class = AluSpec::Class::kConvert;
  bool sat = query.take("sat");
  unsigned from = ptx::bytes_of(source), to = ptx::bytes_of(destination);
  // Of a signed source widened to unsigned and then extended again, neither sign is the right one.
  bool two_steps = from < to && to < widths->destination &&
                   is_signed(source) != is_signed(destination) && is_signed(source);
  if (sat || two_steps) {
    ConvertParameters parameters{.source = source, .destination = destination, .sat = sat};
    spec.immediate = parameters.immediate();
    spec.fn = generic_convert(widths->destination, widths->source);
  } else {
    bool widens = from < to;
    spec.fn = extension(*widths, widens ? from : to, is_signed(widens ? source : destination));
  }
  return query.finish(spec, {bits_type(widths->destination), bits_type(widths->source)});
}

constexpr AluEntry kEntries[] = {{"cvt", find_cvt}};

}  // namespace

std::span<const AluEntry> convert_integer_entries() { return kEntries; }

}  // namespace cb::sim
