// Bit counting, searching, fields and funnel shifts, lop3 and prmt.

#include <immintrin.h>

#include <algorithm>
#include <bit>

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

template <typename T>
struct Popc {
  uint32_t apply(T a) const { return static_cast<uint32_t>(std::popcount(a)); }
};

template <typename T>
struct Clz {
  uint32_t apply(T a) const { return static_cast<uint32_t>(std::countl_zero(a)); }
};

template <typename T>
struct Brev {
  T apply(T a) const {
    using U = uint64_t;
    U x = a;
    x = (x >> 1 & 0x5555555555555555) | (x & 0x5555555555555555) << 1;
    x = (x >> 2 & 0x3333333333333333) | (x & 0x3333333333333333) << 2;
    x = (x >> 4 & 0x0f0f0f0f0f0f0f0f) | (x & 0x0f0f0f0f0f0f0f0f) << 4;
    return static_cast<T>(__builtin_bswap64(x) >> (64 - 8 * sizeof(T)));
  }
};

/// The highest bit that differs from the sign; all ones when there is none.
template <typename T, bool shift_amount>
struct Bfind {
  uint32_t apply(T a) const {
    using U = BitsOf<T>;
    U bits = static_cast<U>(a < 0 ? ~a : a);
    uint32_t leading = static_cast<uint32_t>(std::countl_zero(bits));
    if (bits == 0) return ~0u;
    return shift_amount ? leading : 8 * sizeof(T) - 1 - leading;
  }
};

struct Fns {
  static constexpr bool kPerLane = true;
  uint32_t apply(uint32_t mask, uint32_t base, int32_t offset) const {
    if (base > 31) return ~0u;  // undefined in PTX
    if (offset == 0) return (mask >> base & 1) != 0 ? base : ~0u;
    bool up = offset > 0;
    uint32_t count = up ? static_cast<uint32_t>(offset) : -static_cast<uint32_t>(offset);
    uint32_t left = up ? mask >> base << base : mask << (31 - base) >> (31 - base);
    for (; count > 1 && left != 0; --count) {
      left &= up ? left - 1 : ~(0x80000000u >> std::countl_zero(left));
    }
    if (left == 0) return ~0u;
    return static_cast<uint32_t>(up ? std::countr_zero(left) : 31 - std::countl_zero(left));
  }
};

/// A shift that allows any amount.
template <typename T>
T shift_left(T a, uint32_t n) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  T shifted = a << (n & (kBits - 1));
  return n >= kBits ? T{0} : shifted;
}
template <typename T>
T shift_right(T a, uint32_t n) {
  constexpr uint32_t kBits = 8 * sizeof(T);
  if constexpr (std::is_signed_v<T>) {
    return a >> std::min(n, kBits - 1);
  } else {
    T shifted = a >> (n & (kBits - 1));
    return n >= kBits ? T{0} : shifted;
  }
}

/// The field moved to the top of the word and back down, which extends it by T's sign.
template <typename T>
struct Bfe {
  static constexpr uint32_t kBits = 8 * sizeof(T);
  T apply(T a, uint32_t b, uint32_t c) const {
    uint32_t position = b & 0xff, length = c & 0xff;
    T from_position = shift_right<T>(a, position);
    if (length == 0) return 0;
    uint32_t unused = kBits - std::min(length, kBits);
    auto top = static_cast<BitsOf<T>>(static_cast<BitsOf<T>>(from_position) << unused);
    return static_cast<T>(static_cast<T>(top) >> unused);
  }
  bool affine(const Meta& a, const Meta& b, const Meta& c, Meta& r) const {
    uint32_t position = b.base & 0xff, length = c.base & 0xff;
    if (std::is_signed_v<T> || b.stride != 0 || c.stride != 0 || position >= kBits) return false;
    Meta field;
    return affine_low_bits<T>(a, std::min(position + length, kBits), field) &&
           affine_shift_right<T>(field, position, r);
  }
};

template <typename T>
struct Bfi {
  static T mask(uint32_t position, uint32_t length) {
    return shift_left<T>(~shift_left<T>(~T{0}, length & 0xff), position & 0xff);
  }
  T apply(T a, T b, uint32_t position, uint32_t length) const {
    T field = mask(position, length);
    return (shift_left<T>(a, position & 0xff) & field) | (b & ~field);
  }
};

template <typename T>
const MicroOp* bfi_op(Context& c, const MicroOp* op) {
  Slot length{static_cast<uint16_t>(op->immediate), static_cast<uint16_t>(op->immediate >> 16)};
  const Meta& a = c.meta[op->a.index];
  const Meta& b = c.meta[op->b.index];
  const Meta& p = c.meta[op->c.index];
  const Meta& n = c.meta[length.index];
  if (a.uniform() && b.uniform() && p.uniform() && n.uniform()) {
    T value = Bfi<T>{}.apply(from_base<T>(a.base), from_base<T>(b.base),
                             static_cast<uint32_t>(p.base), static_cast<uint32_t>(n.base));
    write_uniform<T>(c, op->d, value);
    return op + 1;
  }
  alignas(64) T room_a[kLanes];
  alignas(64) T room_b[kLanes];
  if (p.uniform() && n.uniform()) {
    const T* va = read_lanes<T>(c, op->a, room_a);
    const T* vb = read_lanes<T>(c, op->b, room_b);
    uint32_t shift = p.base & 0xff;
    T mask = Bfi<T>::mask(shift, static_cast<uint32_t>(n.base));
    // A shift by the width or more has an empty mask.
    shift = std::min<uint32_t>(shift, 8 * sizeof(T) - 1);
    write_lanes<T>(c, op->d, [=](int i) { return (va[i] << shift & mask) | (vb[i] & ~mask); });
    return op + 1;
  }
  alignas(64) uint32_t room_p[kLanes];
  alignas(64) uint32_t room_n[kLanes];
  const T* va = read_lanes<T>(c, op->a, room_a);
  const T* vb = read_lanes<T>(c, op->b, room_b);
  const uint32_t* vp = read_lanes<uint32_t>(c, op->c, room_p);
  const uint32_t* vn = read_lanes<uint32_t>(c, length, room_n);
  write_lanes<T>(c, op->d, [=](int i) { return Bfi<T>{}.apply(va[i], vb[i], vp[i], vn[i]); });
  return op + 1;
}

template <typename T, bool clamp>
struct Szext {
  T apply(T a, uint32_t n) const {
    if (clamp && n >= 32) return a;
    n &= 31;
    if (n == 0) return 0;
    return static_cast<T>(static_cast<T>(static_cast<uint32_t>(a) << (32 - n)) >> (32 - n));
  }
};

template <bool clamp>
struct Bmsk {
  uint32_t apply(uint32_t position, uint32_t length) const {
    if (!clamp) {
      position &= 31;
      length &= 31;
    }
    return shift_left<uint32_t>(~shift_left<uint32_t>(~0u, length), position);
  }
};

template <bool left, bool clamp>
struct FunnelShift {
  uint32_t apply(uint32_t low, uint32_t high, uint32_t amount) const {
    uint32_t n = clamp ? std::min(amount, 32u) : amount & 31;
    uint64_t both = uint64_t{high} << 32 | low;
    return static_cast<uint32_t>(left ? both << n >> 32 : both >> n);
  }
};

/// Selects by c, then b, then a from the table's eight entries, spread to words.
struct Lop3 {
  uint32_t m[8];
  explicit Lop3(const MicroOp* op) {
    for (int i = 0; i < 8; ++i) m[i] = (op->immediate >> i & 1) != 0 ? ~0u : 0;
  }
  static uint32_t select(uint32_t bits, uint32_t one, uint32_t zero) {
    return ((one ^ zero) & bits) ^ zero;
  }
  uint32_t apply(uint32_t a, uint32_t b, uint32_t c) const {
    uint32_t b0 = select(b, select(c, m[3], m[2]), select(c, m[1], m[0]));
    uint32_t b1 = select(b, select(c, m[7], m[6]), select(c, m[5], m[4]));
    return select(a, b1, b0);
  }
};

enum Lop3Flag : uint8_t { kLop3Or = 1 };

/// lop3.BoolOp: also p = (d != 0) BoolOp q.
const MicroOp* lop3_predicate_op(Context& c, const MicroOp* op) {
  const Lop3 f(op);
  alignas(64) uint32_t room[4][kLanes];
  const uint32_t* va = read_lanes<uint32_t>(c, op->a, room[0]);
  const uint32_t* vb = read_lanes<uint32_t>(c, op->b, room[1]);
  const uint32_t* vc = read_lanes<uint32_t>(c, op->c, room[2]);
  uint32_t* result = room[3];
  for (int i = 0; i < kLanes; ++i) result[i] = f.apply(va[i], vb[i], vc[i]);
  uint32_t bits = pack_lane_bits([=](int i) { return result[i] != 0; });
  uint32_t q = read_condition(c, op);
  uint32_t p = (op->aux & kLop3Or) != 0 ? bits | q : bits & q;
  if (op->d.index != kNoSlot) write_lanes<uint32_t>(c, op->d, [=](int i) { return result[i]; });
  write_predicate(c, pair_index(op), p);
  return op + 1;
}

/// The four selector nibbles of the fixed modes, by the low two bits of the selector.
enum class PrmtMode : uint8_t { kIndex, kF4e, kB4e, kRc8, kEcl, kEcr, kRc16 };

template <PrmtMode mode>
uint32_t prmt_selector(uint32_t c) {
  uint32_t n = c & 3;
  switch (mode) {
    case PrmtMode::kIndex:
      return c;
    case PrmtMode::kF4e:
      return 0x3210 + 0x1111 * n;
    case PrmtMode::kB4e: {
      constexpr uint32_t kTable[] = {0x5670, 0x6701, 0x7012, 0x0123};
      return kTable[n];
    }
    case PrmtMode::kRc8:
      return 0x1111 * n;
    case PrmtMode::kEcl: {
      constexpr uint32_t kTable[] = {0x3210, 0x3211, 0x3222, 0x3333};
      return kTable[n];
    }
    case PrmtMode::kEcr: {
      constexpr uint32_t kTable[] = {0x0000, 0x1110, 0x2210, 0x3210};
      return kTable[n];
    }
    case PrmtMode::kRc16:
      return (n & 1) != 0 ? 0x3232 : 0x1010;
  }
}

template <PrmtMode mode>
struct Prmt {
  uint32_t apply(uint32_t a, uint32_t b, uint32_t c) const {
    uint64_t bytes = uint64_t{b} << 32 | a;
    uint32_t selector = prmt_selector<mode>(c);
    uint32_t result = 0;
    for (int i = 0; i < 4; ++i) {
      uint32_t nibble = selector >> (4 * i) & 15;
      uint32_t byte = static_cast<uint32_t>(bytes >> (8 * (nibble & 7))) & 0xff;
      uint32_t sign = (byte >> 7) * 0xff;
      result |= ((nibble & 8) != 0 ? sign : byte) << (8 * i);
    }
    return result;
  }
};

/// prmt in its default mode, mostly by a constant selector: two byte shuffles then.
const MicroOp* prmt_op(Context& c, const MicroOp* op) {
  const Meta& selector = c.meta[op->c.index];
  const Meta& a = c.meta[op->a.index];
  const Meta& b = c.meta[op->b.index];
  bool one_value = a.uniform() && b.uniform();
  if (!selector.uniform() || one_value || (selector.base & 0x8888) != 0) {
    return lane_op3<Prmt<PrmtMode::kIndex>, uint32_t, uint32_t, uint32_t, uint32_t>(c, op);
  }
  alignas(64) uint32_t room[2][kLanes];
  const uint32_t* va = read_lanes<uint32_t>(c, op->a, room[0]);
  const uint32_t* vb = read_lanes<uint32_t>(c, op->b, room[1]);
  alignas(32) int8_t from_a[32], from_b[32];
  for (int i = 0; i < 32; ++i) {
    int nibble = static_cast<int>(selector.base >> (4 * (i & 3)) & 7);
    int byte = (nibble & 3) + (i & 12);
    from_a[i] = static_cast<int8_t>(nibble < 4 ? byte : -1);
    from_b[i] = static_cast<int8_t>(nibble < 4 ? -1 : byte);
  }
  __m256i pick_a = _mm256_load_si256(reinterpret_cast<const __m256i*>(from_a));
  __m256i pick_b = _mm256_load_si256(reinterpret_cast<const __m256i*>(from_b));
  LaneOutput<uint32_t> output(c, op->d);
  for (int i = 0; i < kLanes; i += 8) {
    __m256i bytes_a = _mm256_load_si256(reinterpret_cast<const __m256i*>(va + i));
    __m256i bytes_b = _mm256_load_si256(reinterpret_cast<const __m256i*>(vb + i));
    __m256i result =
        _mm256_or_si256(_mm256_shuffle_epi8(bytes_a, pick_a), _mm256_shuffle_epi8(bytes_b, pick_b));
    _mm256_store_si256(reinterpret_cast<__m256i*>(output.values() + i), result);
  }
  output.commit();
  return op + 1;
}

template <template <typename> typename F>
OpFn unary_handler(Type type) {
  if (type == Type::kB32) return lane_op1<F<uint32_t>, uint32_t, uint32_t>;
  if (type == Type::kB64) return lane_op1<F<uint64_t>, uint32_t, uint64_t>;
  return nullptr;
}

template <template <typename> typename F>
std::optional<Result<AluSpec>> find_count(AluQuery& query) {
  Type type = query.take_type();
  AluSpec spec;
  spec.latency_class = AluSpec::Class::kSpecialFunction;
  spec.fn = unary_handler<F>(type);
  return query.finish(spec, {Type::kU32, type});
}

std::optional<Result<AluSpec>> find_brev(AluQuery& query) {
  Type type = query.take_type();
  AluSpec spec;
  spec.latency_class = AluSpec::Class::kSpecialFunction;
  if (type == Type::kB32) spec.fn = lane_op1<Brev<uint32_t>, uint32_t, uint32_t>;
  if (type == Type::kB64) spec.fn = lane_op1<Brev<uint64_t>, uint64_t, uint64_t>;
  return query.finish(spec, {type, type});
}

std::optional<Result<AluSpec>> find_bfind(AluQuery& query) {
  bool shift = query.take("shiftamt");
  Type type = query.take_type();
  AluSpec spec;
  spec.latency_class = AluSpec::Class::kSpecialFunction;
  spec.fn = for_integer(type, [&](auto tag) -> OpFn {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 2) {
      return nullptr;
    } else {
      return shift ? lane_op1<Bfind<T, true>, uint32_t, T> : lane_op1<Bfind<T, false>, uint32_t, T>;
    }
  });
  return query.finish(spec, {Type::kU32, type});
}

std::optional<Result<AluSpec>> find_fns(AluQuery& query) {
  AluSpec spec;
  if (query.take("b32")) spec.fn = lane_op3<Fns, uint32_t, uint32_t, uint32_t, int32_t>;
  return query.finish(spec, {Type::kB32, Type::kB32, Type::kB32, Type::kS32});
}

std::optional<Result<AluSpec>> find_bfe(AluQuery& query) {
  Type type = query.take_type();
  AluSpec spec;
  spec.fn = for_integer(type, [](auto tag) -> OpFn {
    using T = typename decltype(tag)::type;
    if constexpr (sizeof(T) == 2) {
      return nullptr;
    } else {
      return lane_op3<Bfe<T>, T, T, uint32_t, uint32_t>;
    }
  });
  return query.finish(spec, {type, type, Type::kU32, Type::kU32});
}

std::optional<Result<AluSpec>> find_bfi(AluQuery& query) {
  Type type = query.take_type();
  AluSpec spec;
  if (type == Type::kB32) spec.fn = bfi_op<uint32_t>;
  if (type == Type::kB64) spec.fn = bfi_op<uint64_t>;
  add_operand(spec, 0, AluPlace::kD, type, true);
  add_operand(spec, 1, AluPlace::kA, type);
  add_operand(spec, 2, AluPlace::kB, type);
  add_operand(spec, 3, AluPlace::kC, Type::kU32);
  add_operand(spec, 4, AluPlace::kExtra, Type::kU32);
  return query.finish(spec, 5);
}

std::optional<Result<AluSpec>> find_szext(AluQuery& query) {
  bool clamp = query.take("clamp");
  if (!clamp && !query.take("wrap")) return query.refuse_modifiers();
  Type type = query.take_type();
  AluSpec spec;
  if (type == Type::kU32) {
    spec.fn = clamp ? lane_op2<Szext<uint32_t, true>, uint32_t, uint32_t, uint32_t>
                    : lane_op2<Szext<uint32_t, false>, uint32_t, uint32_t, uint32_t>;
  } else if (type == Type::kS32) {
    spec.fn = clamp ? lane_op2<Szext<int32_t, true>, int32_t, int32_t, uint32_t>
                    : lane_op2<Szext<int32_t, false>, int32_t, int32_t, uint32_t>;
  }
  return query.finish(spec, {type, type, Type::kU32});
}

std::optional<Result<AluSpec>> find_bmsk(AluQuery& query) {
  using U = uint32_t;
  AluSpec spec;
  bool clamp = query.take("clamp");
  if (clamp || query.take("wrap")) {
    spec.fn = clamp ? lane_op2<Bmsk<true>, U, U, U> : lane_op2<Bmsk<false>, U, U, U>;
  }
  if (!query.take("b32")) return query.refuse_modifiers();
  return query.finish(spec, {Type::kB32, Type::kB32, Type::kB32});
}

template <bool left>
OpFn funnel_handler(AluQuery& query) {
  using U = uint32_t;
  if (query.take("clamp")) return lane_op3<FunnelShift<left, true>, U, U, U, U>;
  return query.take("wrap") ? lane_op3<FunnelShift<left, false>, U, U, U, U> : nullptr;
}

std::optional<Result<AluSpec>> find_shf(AluQuery& query) {
  AluSpec spec;
  if (query.take("l")) {
    spec.fn = funnel_handler<true>(query);
  } else if (query.take("r")) {
    spec.fn = funnel_handler<false>(query);
  }
  if (!query.take("b32")) return query.refuse_modifiers();
  return query.finish(spec, {Type::kB32, Type::kB32, Type::kB32, Type::kU32});
}

std::optional<Result<AluSpec>> find_lop3(AluQuery& query) {
  const auto& operands = query.instruction().operands;
  bool is_or = query.take("or"), is_and = query.take("and");
  if (!query.take("b32")) return query.refuse_modifiers();
  bool with_predicate = is_or || is_and;
  size_t expected = with_predicate ? 6 : 5;
  if (operands.size() != expected || operands[4].kind != Operand::Kind::kImmediate ||
      operands[4].bits > 255) {
    return query.refuse("the fifth operand must be a table from 0 to 255");
  }
  AluSpec spec;
  spec.immediate = operands[4].bits;
  for (size_t i = 1; i <= 3; ++i) {
    add_operand(spec, i, static_cast<AluPlace>(static_cast<size_t>(AluPlace::kA) + i - 1),
                Type::kB32);
  }
  if (!with_predicate) {
    spec.fn = lane_op3<Lop3, uint32_t, uint32_t, uint32_t, uint32_t>;
    add_operand(spec, 0, AluPlace::kD, Type::kB32, true);
    return query.finish(spec, expected);
  }
  if (operands[0].kind != Operand::Kind::kPair || operands[0].elements.size() != 2) {
    return query.refuse("the destination must be a pair `d|p`");
  }
  spec.fn = lop3_predicate_op;
  spec.aux = is_or ? kLop3Or : 0;
  add_operand(spec, 0, AluPlace::kD, Type::kB32, true, 0);
  add_operand(spec, 0, AluPlace::kPair, Type::kPred, true, 1);
  add_operand(spec, 5, AluPlace::kCondition, Type::kPred);
  return query.finish(spec, expected);
}

std::optional<Result<AluSpec>> find_prmt(AluQuery& query) {
  using U = uint32_t;
  if (!query.take("b32")) return query.refuse_modifiers();
  AluSpec spec;
  if (query.next().empty()) {
    spec.fn = prmt_op;
  } else if (query.take("f4e")) {
    spec.fn = lane_op3<Prmt<PrmtMode::kF4e>, U, U, U, U>;
  } else if (query.take("b4e")) {
    spec.fn = lane_op3<Prmt<PrmtMode::kB4e>, U, U, U, U>;
  } else if (query.take("rc8")) {
    spec.fn = lane_op3<Prmt<PrmtMode::kRc8>, U, U, U, U>;
  } else if (query.take("ecl")) {
    spec.fn = lane_op3<Prmt<PrmtMode::kEcl>, U, U, U, U>;
  } else if (query.take("ecr")) {
    spec.fn = lane_op3<Prmt<PrmtMode::kEcr>, U, U, U, U>;
  } else if (query.take("rc16")) {
    spec.fn = lane_op3<Prmt<PrmtMode::kRc16>, U, U, U, U>;
  }
  return query.finish(spec, {Type::kB32, Type::kB32, Type::kB32, Type::kB32});
}

constexpr AluEntry kEntries[] = {
    {"popc", find_count<Popc>}, {"clz", find_count<Clz>}, {"brev", find_brev},
    {"bfind", find_bfind},      {"fns", find_fns},        {"bfe", find_bfe},
    {"bfi", find_bfi},          {"szext", find_szext},    {"bmsk", find_bmsk},
    {"shf", find_shf},          {"lop3", find_lop3},      {"prmt", find_prmt},
};

}  // namespace

std::span<const AluEntry> bit_entries() { return kEntries; }

}  // namespace cb::sim
