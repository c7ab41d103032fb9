// Integer arithmetic but for division: add, sub, mul, mad, sad, the 24-bit multiplies, dot
// products, abs, neg, min and max. Arithmetic is done in unsigned types, where wrapping is defined;
// T in an operation's name says how values are compared and widened.

#include <algorithm>
#include <functional>

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Type;
using Class = AluSpec::Class;

template <typename T>
struct Add {
  T apply(T a, T b) const { return static_cast<T>(a + b); }
  bool affine(const Meta& a, const Meta& b, Meta& r) const { return affine_add<T>(a, b, r); }
};

template <typename T>
struct Sub {
  T apply(T a, T b) const { return static_cast<T>(a - b); }
  bool affine(const Meta& a, const Meta& b, Meta& r) const { return affine_sub<T>(a, b, r); }
};

int32_t saturate_s32(int64_t value) {
  return static_cast<int32_t>(std::clamp<int64_t>(value, INT32_MIN, INT32_MAX));
}

struct AddSat {
  int32_t apply(int32_t a, int32_t b) const { return saturate_s32(int64_t{a} + b); }
};
struct SubSat {
  int32_t apply(int32_t a, int32_t b) const { return saturate_s32(int64_t{a} - b); }
};

/// Applies an operation on T to both halves of a 32-bit word.
template <typename F, typename T>
struct Halves {
  uint32_t apply(uint32_t a, uint32_t b) const {
    auto low = static_cast<uint16_t>(F{}.apply(static_cast<T>(a), static_cast<T>(b)));
    auto high = static_cast<uint16_t>(F{}.apply(static_cast<T>(a >> 16), static_cast<T>(b >> 16)));
    return low | uint32_t{high} << 16;
  }
};

/// The type of twice the width.
template <typename T>
using Wide = std::conditional_t<
    sizeof(T) == 2, std::conditional_t<std::is_signed_v<T>, int32_t, uint32_t>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>>>;

template <typename T>
T high_half(T a, T b) {
  return static_cast<T>((Wide<T>{a} * b) >> (8 * sizeof(T)));
}

template <typename T>
struct MulLow {
  // A product of two uint16_t as int would overflow.
  using Arithmetic = std::conditional_t<sizeof(T) == 2, uint32_t, T>;
  T apply(T a, T b) const { return static_cast<T>(Arithmetic{a} * b); }
  bool affine(const Meta& a, const Meta& b, Meta& r) const { return affine_mul<T>(a, b, r); }
};

template <typename T>
struct MulHigh {
  T apply(T a, T b) const { return high_half(a, b); }
};

/// a * b of the slots widened as T is signed; one of them must be uniform.
template <typename T>
bool affine_mul_wide(const Meta& a, const Meta& b, Meta& r) {
  Meta wide_a, wide_b;
  return affine_widen<Wide<T>, T>(a, wide_a) && affine_widen<Wide<T>, T>(b, wide_b) &&
         affine_mul<Wide<T>>(wide_a, wide_b, r);
}

template <typename T>
struct MulWide {
  Wide<T> apply(T a, T b) const { return Wide<T>{a} * b; }
  bool affine(const Meta& a, const Meta& b, Meta& r) const { return affine_mul_wide<T>(a, b, r); }
};

template <typename T>
struct MadLow {
  T apply(T a, T b, T c) const { return static_cast<T>(MulLow<T>{}.apply(a, b) + c); }
  bool affine(const Meta& a, const Meta& b, const Meta& c, Meta& r) const {
    Meta product;
    return affine_mul<T>(a, b, product) && affine_add<T>(product, c, r);
  }
};

template <typename T>
struct MadHigh {
  T apply(T a, T b, T c) const {
    return static_cast<T>(static_cast<BitsOf<T>>(high_half(a, b)) + static_cast<BitsOf<T>>(c));
  }
};

struct MadHighSat {
  int32_t apply(int32_t a, int32_t b, int32_t c) const {
    return saturate_s32(int64_t{high_half(a, b)} + c);
  }
};

template <typename T>
struct MadWide {
  using U = std::make_unsigned_t<Wide<T>>;
  U apply(T a, T b, U c) const { return static_cast<U>(Wide<T>{a} * b) + c; }
  bool affine(const Meta& a, const Meta& b, const Meta& c, Meta& r) const {
    Meta product;
    return affine_mul_wide<T>(a, b, product) && affine_add<U>(product, c, r);
  }
};

/// The product of the low 24 bits, extended as T is signed.
template <typename T>
Wide<T> product_24(T a, T b) {
  T low_a = static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << 8) >> 8);
  T low_b = static_cast<T>(static_cast<T>(static_cast<uint32_t>(b) << 8) >> 8);
  return Wide<T>{low_a} * low_b;
}

template <typename T, bool high>
struct Mul24 {
  T apply(T a, T b) const { return static_cast<T>(product_24(a, b) >> (high ? 16 : 0)); }
};

template <typename T, bool high>
struct Mad24 {
  T apply(T a, T b, T c) const {
    return static_cast<T>(static_cast<uint32_t>(Mul24<T, high>{}.apply(a, b)) +
                          static_cast<uint32_t>(c));
  }
};

struct Mad24HighSat {
  int32_t apply(int32_t a, int32_t b, int32_t c) const {
    return saturate_s32(int64_t{Mul24<int32_t, true>{}.apply(a, b)} + c);
  }
};

template <typename T>
struct Sad {
  BitsOf<T> apply(T a, T b, BitsOf<T> c) const {
    BitsOf<T> x = static_cast<BitsOf<T>>(a), y = static_cast<BitsOf<T>>(b);
    return static_cast<BitsOf<T>>(c + static_cast<BitsOf<T>>(a < b ? y - x : x - y));
  }
};

template <typename T>
struct Abs {
  T apply(T a) const { return a < 0 ? static_cast<T>(-static_cast<BitsOf<T>>(a)) : a; }
  bool affine(const Meta& a, Meta& r) const {
    T first, last;
    if (!affine_ends<T>(a, first, last)) return false;
    if (first >= 0 && last >= 0) {
      r = a;
      return true;
    }
    return first < 0 && last < 0 && affine_sub<T>(Meta{}, a, r);
  }
};

template <typename T>
struct Neg {
  T apply(T a) const { return static_cast<T>(-a); }
  bool affine(const Meta& a, Meta& r) const { return affine_sub<T>(Meta{}, a, r); }
};

template <typename T, bool is_max>
struct MinMax {
  T apply(T a, T b) const { return is_max ? std::max(a, b) : std::min(a, b); }
  bool affine(const Meta& a, const Meta& b, Meta& r) const {
    bool a_less;
    if (!affine_order<T>(a, b, std::less<T>{}, a_less)) return false;
    r = a_less == is_max ? b : a;
    return true;
  }
};

template <typename T, bool is_max>
struct MinMaxRelu {
  T apply(T a, T b) const { return std::max<T>(MinMax<T, is_max>{}.apply(a, b), 0); }
};

template <bool signed_a, bool signed_b>
struct Dp4a {
  uint32_t apply(uint32_t a, uint32_t b, uint32_t c) const {
    for (int shift = 0; shift < 32; shift += 8) {
      int x = signed_a ? static_cast<int8_t>(a >> shift) : static_cast<uint8_t>(a >> shift);
      int y = signed_b ? static_cast<int8_t>(b >> shift) : static_cast<uint8_t>(b >> shift);
      c += static_cast<uint32_t>(x * y);
    }
    return c;
  }
};

template <bool signed_a, bool signed_b, bool high>
struct Dp2a {
  uint32_t apply(uint32_t a, uint32_t b, uint32_t c) const {
    b >>= high ? 16 : 0;
    for (int i = 0; i < 2; ++i) {
      uint32_t half = a >> (16 * i), byte = b >> (8 * i);
      int x = signed_a ? static_cast<int16_t>(half) : static_cast<uint16_t>(half);
      int y = signed_b ? static_cast<int8_t>(byte) : static_cast<uint8_t>(byte);
      c += static_cast<uint32_t>(x * y);
    }
    return c;
  }
};

std::optional<Result<AluSpec>> find_add_sub(AluQuery& query) {
  bool is_sub = query.opcode() == "sub";
  AluSpec spec;
  if (!is_sub && (query.take("u16x2") || query.take("s16x2"))) {
    using F = Halves<Add<uint16_t>, uint16_t>;
    spec.fn = lane_op2<F, uint32_t, uint32_t, uint32_t>;
    return query.finish(spec, {Type::kB32, Type::kB32, Type::kB32});
  }
  Type type = query.last_type();
  if (!is_integer(type) || query.has("cc")) return std::nullopt;
  query.take(ptx::name_of(type));
  if (type == Type::kS32 && query.take("sat")) {
    spec.fn = is_sub ? lane_op2<SubSat, int32_t, int32_t, int32_t>
                     : lane_op2<AddSat, int32_t, int32_t, int32_t>;
  } else {
    spec.fn = for_width(type, [&](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return is_sub ? lane_op2<Sub<T>, T, T, T> : lane_op2<Add<T>, T, T, T>;
    });
  }
  return query.finish(spec, {type, type, type});
}

Type widened(Type type) {
  switch (type) {
    case Type::kU16:
      return Type::kU32;
    case Type::kS16:
      return Type::kS32;
    case Type::kU32:
      return Type::kU64;
    case Type::kS32:
      return Type::kS64;
    default:
      return Type::kNone;
  }
}

OpFn mul_handler(AluQuery& query, Type type) {
  if (query.take("lo")) {
    return for_width(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op2<MulLow<T>, T, T, T>;
    });
  }
  if (query.take("hi")) {
    return for_integer(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op2<MulHigh<T>, T, T, T>;
    });
  }
  if (widened(type) == Type::kNone || !query.take("wide")) return nullptr;
  return for_integer(type, [](auto tag) -> OpFn {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 8) {
      return nullptr;
    } else {
      return lane_op2<MulWide<T>, Wide<T>, T, T>;
    }
  });
}

OpFn mad_handler(AluQuery& query, Type type) {
  if (query.take("lo")) {
    return for_width(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op3<MadLow<T>, T, T, T, T>;
    });
  }
  if (query.take("hi")) {
    if (type == Type::kS32 && query.take("sat")) {
      return lane_op3<MadHighSat, int32_t, int32_t, int32_t, int32_t>;
    }
    return for_integer(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op3<MadHigh<T>, T, T, T, T>;
    });
  }
  if (widened(type) == Type::kNone || !query.take("wide")) return nullptr;
  return for_integer(type, [](auto tag) -> OpFn {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 8) {
      return nullptr;
    } else {
      using U = typename MadWide<T>::U;
      return lane_op3<MadWide<T>, U, T, T, U>;
    }
  });
}

std::optional<Result<AluSpec>> find_mul_mad(AluQuery& query) {
  Type type = query.last_type();
  if (!is_integer(type) || query.has("cc")) return std::nullopt;
  query.take(ptx::name_of(type));
  bool is_mad = query.opcode() == "mad";
  Type result = query.has("wide") ? widened(type) : type;
  AluSpec spec;
  spec.fn = is_mad ? mad_handler(query, type) : mul_handler(query, type);
  spec.latency_class = ptx::bytes_of(type) == 8 ? Class::kHalfRate : Class::kMultiply;
  return is_mad ? query.finish(spec, {result, type, type, result})
                : query.finish(spec, {result, type, type});
}

template <typename T>
OpFn mul24_handler(AluQuery& query, bool is_mad) {
  if (query.take("lo")) {
    return is_mad ? lane_op3<Mad24<T, false>, T, T, T, T> : lane_op2<Mul24<T, false>, T, T, T>;
  }
  if (!query.take("hi")) return nullptr;
  if (is_mad && std::is_signed_v<T> && query.take("sat")) {
    return lane_op3<Mad24HighSat, int32_t, int32_t, int32_t, int32_t>;
  }
  return is_mad ? lane_op3<Mad24<T, true>, T, T, T, T> : lane_op2<Mul24<T, true>, T, T, T>;
}

std::optional<Result<AluSpec>> find_mul24(AluQuery& query) {
  bool is_mad = query.opcode() == "mad24";
  bool is_unsigned = query.take("u32");
  AluSpec spec;
  spec.latency_class = Class::kMultiply;
  if (is_unsigned) {
    spec.fn = mul24_handler<uint32_t>(query, is_mad);
  } else if (query.take("s32")) {
    spec.fn = mul24_handler<int32_t>(query, is_mad);
  }
  Type type = is_unsigned ? Type::kU32 : Type::kS32;
  return is_mad ? query.finish(spec, {type, type, type, type})
                : query.finish(spec, {type, type, type});
}

std::optional<Result<AluSpec>> find_sad(AluQuery& query) {
  Type type = query.take_type();
  AluSpec spec;
  spec.fn = for_integer(type, [](auto tag) -> OpFn {
    using T = typename decltype(tag)::type;
    return lane_op3<Sad<T>, BitsOf<T>, T, T, BitsOf<T>>;
  });
  return query.finish(spec, {type, type, type, type});
}

std::optional<Result<AluSpec>> find_abs_neg(AluQuery& query) {
  Type type = query.last_type();
  if (!is_integer(type)) return std::nullopt;
  query.take(ptx::name_of(type));
  bool is_neg = query.opcode() == "neg";
  AluSpec spec;
  spec.fn = for_signed(type, [&](auto tag) -> OpFn {
    using T = typename decltype(tag)::type;
    return is_neg ? lane_op1<Neg<T>, T, T> : lane_op1<Abs<T>, T, T>;
  });
  return query.finish(spec, {type, type});
}

template <bool is_max>
OpFn min_max_x2(bool is_signed, bool relu) {
  if (!is_signed)
    return lane_op2<Halves<MinMax<uint16_t, is_max>, uint16_t>, uint32_t, uint32_t, uint32_t>;
  if (relu)
    return lane_op2<Halves<MinMaxRelu<int16_t, is_max>, int16_t>, uint32_t, uint32_t, uint32_t>;
  return lane_op2<Halves<MinMax<int16_t, is_max>, int16_t>, uint32_t, uint32_t, uint32_t>;
}

template <bool is_max>
std::optional<Result<AluSpec>> find_min_max(AluQuery& query) {
  AluSpec spec;
  if (query.has("u16x2") || query.has("s16x2")) {
    bool is_signed = query.take("s16x2");
    bool relu = is_signed && query.take("relu");
    query.take("u16x2");
    spec.fn = min_max_x2<is_max>(is_signed, relu);
    return query.finish(spec, {Type::kB32, Type::kB32, Type::kB32});
  }
  Type type = query.last_type();
  if (!is_integer(type)) return std::nullopt;
  query.take(ptx::name_of(type));
  if (type == Type::kS32 && query.take("relu")) {
    spec.fn = lane_op2<MinMaxRelu<int32_t, is_max>, int32_t, int32_t, int32_t>;
  } else {
    spec.fn = for_integer(type, [](auto tag) -> OpFn {
      using T = typename decltype(tag)::type;
      return lane_op2<MinMax<T, is_max>, T, T, T>;
    });
  }
  return query.finish(spec, {type, type, type});
}

template <bool signed_a, bool signed_b>
OpFn dot_handler(bool is_dp4a, bool high) {
  using U = uint32_t;
  if (is_dp4a) return lane_op3<Dp4a<signed_a, signed_b>, U, U, U, U>;
  return high ? lane_op3<Dp2a<signed_a, signed_b, true>, U, U, U, U>
              : lane_op3<Dp2a<signed_a, signed_b, false>, U, U, U, U>;
}

std::optional<Result<AluSpec>> find_dot(AluQuery& query) {
  bool is_dp4a = query.opcode() == "dp4a";
  bool high = !is_dp4a && query.take("hi");
  if (!is_dp4a && !high && !query.take("lo")) return query.refuse_modifiers();
  Type a = query.take_type(), b = query.take_type();
  auto is_word = [](Type type) { return type == Type::kU32 || type == Type::kS32; };
  if (!is_word(a) || !is_word(b)) return query.refuse_modifiers();
  AluSpec spec;
  spec.latency_class = Class::kMultiply;
  if (is_signed(a)) {
    spec.fn = is_signed(b) ? dot_handler<true, true>(is_dp4a, high)
                           : dot_handler<true, false>(is_dp4a, high);
  } else {
    spec.fn = is_signed(b) ? dot_handler<false, true>(is_dp4a, high)
                           : dot_handler<false, false>(is_dp4a, high);
  }
  return query.finish(spec, {Type::kB32, Type::kB32, Type::kB32, Type::kB32});
}

constexpr AluEntry kEntries[] = {
    {"add", find_add_sub},       {"sub", find_add_sub},
    {"mul", find_mul_mad},       {"mad", find_mul_mad},
    {"mul24", find_mul24},       {"mad24", find_mul24},
    {"sad", find_sad},           {"abs", find_abs_neg},
    {"neg", find_abs_neg},       {"min", find_min_max<false>},
    {"max", find_min_max<true>}, {"dp4a", find_dot},
    {"dp2a", find_dot},
};

}  // namespace

std::span<const AluEntry> integer_entries() { return kEntries; }

}  // namespace cb::sim
