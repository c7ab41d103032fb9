// and, or, xor, not, cnot and the shifts. Masks and shifts of thread indices are how kernels find
// warp, lane and tile numbers, so these have affine rules: where the lanes' bits cannot meet, `or`
// and `xor` are sums, and a field of bits is affine where no lane carries out of it.

#include <bit>

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;

/// Bits that may be one in some lane; exact for a uniform slot.
template <typename T>
T possible_bits(const Meta& m) {
  return m.stride == 0 ? static_cast<T>(m.base) : affine_possible_bits<T>(m);
}

/// x & mask for an unsigned type T: the low bits up to the mask's top, less those below it.
template <typename T>
bool affine_mask(const Meta& x, T mask, Meta& r) {
  if ((possible_bits<T>(x) & static_cast<T>(~mask)) == 0) {
    r = x;
    return true;
  }
  if (mask == 0) {
    r = Meta{};
    return true;
  }
  unsigned low = static_cast<unsigned>(std::countr_zero(mask));
  unsigned high =
      static_cast<unsigned>(8 * sizeof(T)) - static_cast<unsigned>(std::countl_zero(mask));
  if (static_cast<unsigned>(std::popcount(mask)) != high - low) return false;
  Meta upper, lower;
  return affine_low_bits<T>(x, high, upper) && affine_low_bits<T>(x, low, lower) &&
         affine_sub<T>(upper, lower, r);
}

template <typename T>
struct And {
  T apply(T a, T b) const { return a & b; }
  bool affine(const Meta& a, const Meta& b, Meta& r) const {
    if (b.stride == 0) return affine_mask<T>(a, static_cast<T>(b.base), r);
    return a.stride == 0 && affine_mask<T>(b, static_cast<T>(a.base), r);
  }
};

template <typename T>
bool affine_disjoint_sum(const Meta& a, const Meta& b, Meta& r) {
  return (possible_bits<T>(a) & possible_bits<T>(b)) == 0 && affine_add<T>(a, b, r);
}

template <typename T>
struct Or {
  T apply(T a, T b) const { return a | b; }
  bool affine(const Meta& a, const Meta& b, Meta& r) const {
    return affine_disjoint_sum<T>(a, b, r);
  }
};

template <typename T>
struct Not {
  T apply(T a) const { return static_cast<T>(~a); }
  bool affine(const Meta& a, Meta& r) const {
    return affine_sub<T>(Meta{static_cast<T>(~T{0}), 0, 0}, a, r);
  }
};

template <typename T>
struct Xor {
  T apply(T a, T b) const { return a ^ b; }
  bool affine(const Meta& a, const Meta& b, Meta& r) const {
    constexpr T kOnes = static_cast<T>(~T{0});
    if (b.stride == 0 && b.base == kOnes) return Not<T>{}.affine(a, r);
    if (a.stride == 0 && a.base == kOnes) return Not<T>{}.affine(b, r);
    return affine_disjoint_sum<T>(a, b, r);
  }
};

template <typename T>
struct Cnot {
  T apply(T a) const { return a == 0; }
};

/// A shift by the width or more gives 0.
template <typename T>
struct ShiftLeft {
  static constexpr unsigned kBits = 8 * sizeof(T);
  T apply(T a, uint32_t n) const {
    T shifted = static_cast<T>(a << (n & (kBits - 1)));
    return n >= kBits ? T{0} : shifted;
  }
  bool affine(const Meta& a, const Meta& n, Meta& r) const {
    if (n.stride != 0) return false;
    if (n.base >= kBits) {
      r = Meta{};
      return true;
    }
    return affine_scale<T>(a, uint64_t{1} << n.base, r);
  }
};

/// A shift by the width or more gives 0, or the sign in all bits.
template <typename T>
struct ShiftRight {
  static constexpr unsigned kBits = 8 * sizeof(T);
  T apply(T a, uint32_t n) const {
    T shifted = static_cast<T>(a >> (n & (kBits - 1)));
    return n >= kBits ? static_cast<T>(a < 0 ? -1 : 0) : shifted;
  }
  bool affine(const Meta& a, const Meta& n, Meta& r) const {
    if (n.stride != 0) return false;
    if (n.base < kBits) return affine_shift_right<T>(a, static_cast<unsigned>(n.base), r);
    if (std::is_unsigned_v<T>) {
      r = Meta{};
      return true;
    }
    return affine_shift_right<T>(a, kBits - 1, r);
  }
};

template <template <typename> typename F>
std::optional<Result<AluSpec>> find_logic2(AluQuery& query) {
  Type type = query.last_type();
  if (type == Type::kPred) return std::nullopt;
  AluSpec spec;
  if (is_bits(type)) {
    query.take(ptx::name_of(type));
    spec.fn = for_width(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op2<F<T>, T, T, T>;
    });
  }
  return query.finish(spec, {type, type, type});
}

template <template <typename> typename F>
std::optional<Result<AluSpec>> find_logic1(AluQuery& query) {
  Type type = query.last_type();
  if (type == Type::kPred) return std::nullopt;
  AluSpec spec;
  if (is_bits(type)) {
    query.take(ptx::name_of(type));
    spec.fn = for_width(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op1<F<T>, T, T>;
    });
  }
  return query.finish(spec, {type, type});
}

std::optional<Result<AluSpec>> find_shift(AluQuery& query) {
  bool left = query.opcode() == "shl";
  Type type = query.take_type();
  AluSpec spec;
  if (left && is_bits(type)) {
    spec.fn = for_width(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op2<ShiftLeft<T>, T, T, uint32_t>;
    });
  } else if (!left && is_signed(type)) {
    spec.fn = for_signed(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op2<ShiftRight<T>, T, T, uint32_t>;
    });
  } else if (!left && (is_bits(type) || is_unsigned(type))) {
    spec.fn = for_width(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op2<ShiftRight<T>, T, T, uint32_t>;
    });
  }
  return query.finish(spec, {type, type, Type::kU32});
}

constexpr AluEntry kEntries[] = {
    {"and", find_logic2<And>}, {"or", find_logic2<Or>},     {"xor", find_logic2<Xor>},
    {"not", find_logic1<Not>}, {"cnot", find_logic1<Cnot>}, {"shl", find_shift},
    {"shr", find_shift},
};

}  // namespace

std::span<const AluEntry> logic_entries() { return kEntries; }

}  // namespace cb::sim
