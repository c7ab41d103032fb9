#pragma once

// What the families of cvt share: the relaxed widths of its registers, and the conversion of single
// numbers between any two types, which serves every combination that has no handler of its own.

#include <bit>

#include "simulator/exec/alu_query.h"

namespace cb::sim {

/// The parameters of a conversion, carried in MicroOp::immediate.
struct ConvertParameters {
  ptx::Type source = ptx::Type::kNone;
  ptx::Type destination = ptx::Type::kNone;
  Rounding rounding = Rounding::kNearest;
  bool to_integral = false;  ///< .rni and the like: the result is a whole number
  bool ftz = false;
  bool sat = false;
  bool relu = false;
  bool finite = false;

  static ConvertParameters of(const MicroOp* op) {
    return std::bit_cast<ConvertParameters>(op->immediate);
  }
  uint64_t immediate() const { return std::bit_cast<uint64_t>(*this); }
};
static_assert(sizeof(ConvertParameters) == sizeof(uint64_t));

/// Converts the low bits of `raw` and extends the result to 64 bits by the destination's sign.
uint64_t convert_bits(uint64_t raw, const ConvertParameters& parameters);

/// Handler that calls convert_bits for each active lane, for registers of the given widths.
OpFn generic_convert(unsigned destination_bytes, unsigned source_bytes);

/// The widths of the registers of a conversion, which may exceed those of its types.
struct ConvertWidths {
  unsigned destination = 0;
  unsigned source = 0;
};
Result<ConvertWidths> convert_widths(const AluQuery& query, ptx::Type destination,
                                     ptx::Type source);

/// The bit type of `bytes` bytes.
ptx::Type bits_type(unsigned bytes);

}  // namespace cb::sim
