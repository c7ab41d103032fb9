// div and rem. A zero divisor gives all ones, for both, as the hardware's routines do. Quotients of
// up to 32 bits are computed in double precision, which vectorises: a true quotient that is not an
// integer is at least 1/b away from one, far more than the rounding error.

#include <bit>
#include <cmath>
#include <limits>

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;

template <typename T>
double to_double(T value) {
  if constexpr (std::is_same_v<T, uint32_t>) {
    // AVX2 converts signed words only: 2^52 + value, less 2^52.
    return std::bit_cast<double>(0x4330000000000000 | uint64_t{value}) - 0x1p52;
  } else {
    return static_cast<int32_t>(value);
  }
}

/// The low 32 bits of an integral value of magnitude up to 2^32.
inline uint32_t low_word(double integral) {
  return static_cast<uint32_t>(std::bit_cast<uint64_t>(integral + 0x1.8p52));
}

template <typename T>
T quotient(T a, T b) {
  if constexpr (sizeof(T) < 8) {
    return static_cast<T>(low_word(std::trunc(to_double(a) / to_double(b))));
  } else if constexpr (std::is_signed_v<T>) {
    return b == -1 ? -a : a / b;
  } else {
    return a / b;
  }
}

constexpr bool divides_per_lane(size_t bytes) { return bytes == 8; }

template <typename T>
struct Div {
  static constexpr bool kPerLane = divides_per_lane(sizeof(T));
  T apply(T a, T b) const {
    if constexpr (kPerLane) {
      return b == 0 ? static_cast<T>(-1) : quotient(a, b);
    } else {
      T q = quotient(a, b);
      return b == 0 ? static_cast<T>(-1) : q;
    }
  }
  bool affine(const Meta& a, const Meta& b, Meta& r) const {
    return b.stride == 0 && affine_divide<T>(a, from_base<T>(b.base), r);
  }
};

template <typename T>
struct Rem {
  static constexpr bool kPerLane = divides_per_lane(sizeof(T));
  T apply(T a, T b) const {
    if constexpr (kPerLane) {
      return b == 0 ? static_cast<T>(-1) : static_cast<T>(a - quotient(a, b) * b);
    } else {
      uint32_t product = static_cast<uint32_t>(quotient(a, b)) * static_cast<uint32_t>(b);
      T rest = static_cast<T>(static_cast<uint32_t>(a) - product);
      return b == 0 ? static_cast<T>(-1) : rest;
    }
  }
  bool affine(const Meta& a, const Meta& b, Meta& r) const {
    return b.stride == 0 && affine_remainder<T>(a, from_base<T>(b.base), r);
  }
};

std::optional<Result<AluSpec>> find_div_rem(AluQuery& query) {
  Type type = query.last_type();
  if (!is_integer(type)) return std::nullopt;
  query.take(ptx::name_of(type));
  bool is_rem = query.opcode() == "rem";
  AluSpec spec;
  spec.latency_class = Class::kDouble;
  spec.fn = for_integer(type, [&](auto tag) -> OpFn {
    using T = typename decltype(tag)::type;
    return is_rem ? lane_op2<Rem<T>, T, T, T> : lane_op2<Div<T>, T, T, T>;
  });
  return query.finish(spec, {type, type, type});
}

constexpr AluEntry kEntries[] = {{"div", find_div_rem}, {"rem", find_div_rem}};

}  // namespace

std::span<const AluEntry> divide_entries() { return kEntries; }

}  // namespace cb::sim
