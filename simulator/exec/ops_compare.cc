// setp, set and testp. The eighteen comparisons of PTX come down to five: equal, ordered and
// different, less, less or equal, and both numbers. The rest exchange the operands, which costs
// nothing here because the decoder puts them where we say, or complement the answer.

#include <functional>

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/comparisons.h"
#include "simulator/exec/float_rules.h"
#include "simulator/exec/lane_ops.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

/// MicroOp::aux: whether to complement, and how to combine with the source predicate.
enum CompareAux : uint8_t { kComplement = 1, kAnd = 2, kOr = 4, kXor = 6, kCombine = 6 };

uint32_t combined(uint32_t bits, uint32_t condition, uint8_t aux) {
  switch (aux & kCombine) {
    case kAnd:
      return bits & condition;
    case kOr:
      return bits | condition;
    case kXor:
      return bits ^ condition;
    default:
      return bits;
  }
}

uint32_t complement_mask(const MicroOp* op) { return (op->aux & kComplement) != 0 ? kAllLanes : 0; }

template <typename F, typename T>
[[gnu::noinline]] uint32_t compare(Context& c, const MicroOp* op) {
  return compare_lanes<F, T, T>(c, op->a, op->b) ^ complement_mask(op);
}

/// setp with one destination and no source predicate: nearly all of them.
template <typename F, typename T>
const MicroOp* setp_op(Context& c, const MicroOp* op) {
  write_predicate(c, op->d.index, compare_lanes<F, T, T>(c, op->a, op->b) ^ complement_mask(op));
  return op + 1;
}

template <typename F, typename T>
const MicroOp* setp_combined_op(Context& c, const MicroOp* op) {
  uint32_t bits = compare<F, T>(c, op);
  uint32_t condition = read_condition(c, op);
  write_predicate(c, op->d.index, combined(bits, condition, op->aux));
  write_predicate(c, pair_index(op), combined(~bits, condition, op->aux));
  return op + 1;
}

/// The bits of the low and the high numbers of packed operands.
template <typename F>
void compare_pairs(Context& c, const MicroOp* op, uint32_t (&bits)[2]) {
  alignas(64) uint32_t room[2][kLanes];
  const uint32_t* a = read_lanes<uint32_t>(c, op->a, room[0]);
  const uint32_t* b = read_lanes<uint32_t>(c, op->b, room[1]);
  for (int k = 0; k < 2; ++k) {
    bits[k] = pack_lane_bits([=](int i) {
      return F{}.apply(static_cast<uint16_t>(a[i] >> (16 * k)),
                       static_cast<uint16_t>(b[i] >> (16 * k)));
    });
    bits[k] ^= complement_mask(op);
  }
}

template <typename F>
const MicroOp* setp_pair_op(Context& c, const MicroOp* op) {
  uint32_t bits[2];
  compare_pairs<F>(c, op, bits);
  uint32_t condition = read_condition(c, op);
  write_predicate(c, op->d.index, combined(bits[0], condition, op->aux));
  write_predicate(c, pair_index(op), combined(bits[1], condition, op->aux));
  return op + 1;
}

/// set: D is the result's width; the value of `true` is in the low bits of MicroOp::immediate.
template <typename F, typename T, typename D>
const MicroOp* set_op(Context& c, const MicroOp* op) {
  uint32_t bits = combined(compare<F, T>(c, op), read_condition(c, op), op->aux);
  D yes = static_cast<D>(op->immediate);
  uint32_t active = bits & c.mask;
  if (active == 0 || active == c.mask) {
    write_uniform<D>(c, op->d, active != 0 ? yes : D{0});
  } else {
    write_lanes<D>(c, op->d, [=](int i) { return (bits >> i & 1) != 0 ? yes : D{0}; });
  }
  return op + 1;
}

template <typename F>
const MicroOp* set_pair_op(Context& c, const MicroOp* op) {
  uint32_t bits[2];
  compare_pairs<F>(c, op, bits);
  uint32_t condition = read_condition(c, op);
  for (uint32_t& half : bits) half = combined(half, condition, op->aux);
  uint32_t yes = op->immediate & 0xffff;
  write_lanes<uint32_t>(c, op->d, [&](int i) {
    return ((bits[0] >> i & 1) != 0 ? yes : 0) | ((bits[1] >> i & 1) != 0 ? yes << 16 : 0);
  });
  return op + 1;
}

/// The handlers of one primitive comparison.
struct Handlers {
  OpFn setp = nullptr;
  OpFn setp_combined = nullptr;
  OpFn set16 = nullptr;
  OpFn set32 = nullptr;
};

template <typename F, typename T>
constexpr Handlers kHandlers = {setp_op<F, T>, setp_combined_op<F, T>, set_op<F, T, uint16_t>,
                                set_op<F, T, uint32_t>};
template <typename F>
constexpr Handlers kPairHandlers = {nullptr, setp_pair_op<F>, nullptr, set_pair_op<F>};

template <typename T>
Handlers integer_handlers(Primitive primitive) {
  if (primitive == Primitive::kEqual) {
    using U = std::make_unsigned_t<T>;
    return kHandlers<IntEqual<U>, U>;
  }
  return primitive == Primitive::kLess ? kHandlers<IntLess<T>, T> : Handlers{};
}

template <template <Primitive> typename F, typename T>
Handlers float_handlers(Primitive primitive) {
  switch (primitive) {
    case Primitive::kEqual:
      return kHandlers<F<Primitive::kEqual>, T>;
    case Primitive::kDifferent:
      return kHandlers<F<Primitive::kDifferent>, T>;
    case Primitive::kLess:
      return kHandlers<F<Primitive::kLess>, T>;
    case Primitive::kLessEqual:
      return kHandlers<F<Primitive::kLessEqual>, T>;
    case Primitive::kNumbers:
      return kHandlers<F<Primitive::kNumbers>, T>;
  }
  return {};
}

template <template <Primitive> typename F>
Handlers pair_handlers(Primitive primitive) {
  switch (primitive) {
    case Primitive::kEqual:
      return kPairHandlers<F<Primitive::kEqual>>;
    case Primitive::kDifferent:
      return kPairHandlers<F<Primitive::kDifferent>>;
    case Primitive::kLess:
      return kPairHandlers<F<Primitive::kLess>>;
    case Primitive::kLessEqual:
      return kPairHandlers<F<Primitive::kLessEqual>>;
    case Primitive::kNumbers:
      return kPairHandlers<F<Primitive::kNumbers>>;
  }
  return {};
}

template <Primitive p>
using CompareF32 = FloatCompare<float, p, false>;
template <Primitive p>
using CompareF32Ftz = FloatCompare<float, p, true>;
template <Primitive p>
using CompareF64 = FloatCompare<double, p, false>;
template <Primitive p>
using CompareF16 = HalfCompare<0x7c00, p, false>;
template <Primitive p>
using CompareF16Ftz = HalfCompare<0x7c00, p, true>;
template <Primitive p>
using CompareBf16 = HalfCompare<0x7f80, p, false>;

Handlers handlers_for(Type type, Primitive primitive, bool ftz) {
  switch (type) {
    case Type::kU16:
    case Type::kB16:
      return integer_handlers<uint16_t>(primitive);
    case Type::kU32:
    case Type::kB32:
      return integer_handlers<uint32_t>(primitive);
    case Type::kU64:
    case Type::kB64:
      return integer_handlers<uint64_t>(primitive);
    case Type::kS16:
      return integer_handlers<int16_t>(primitive);
    case Type::kS32:
      return integer_handlers<int32_t>(primitive);
    case Type::kS64:
      return integer_handlers<int64_t>(primitive);
    case Type::kF32:
      return ftz ? float_handlers<CompareF32Ftz, float>(primitive)
                 : float_handlers<CompareF32, float>(primitive);
    case Type::kF64:
      return float_handlers<CompareF64, double>(primitive);
    case Type::kF16:
      return ftz ? float_handlers<CompareF16Ftz, uint16_t>(primitive)
                 : float_handlers<CompareF16, uint16_t>(primitive);
    case Type::kBf16:
      return float_handlers<CompareBf16, uint16_t>(primitive);
    case Type::kF16x2:
      return ftz ? pair_handlers<CompareF16Ftz>(primitive) : pair_handlers<CompareF16>(primitive);
    case Type::kBf16x2:
      return pair_handlers<CompareBf16>(primitive);
    default:
      return {};
  }
}

/// A comparison as the text names it, reduced for the type of its operands.
struct Lookup {
  Comparison comparison;
  Handlers handlers;
  bool combines = false;
  uint8_t aux = 0;
};

/// Takes the comparison, the combining operator and .ftz; the types are taken already.
std::optional<Lookup> take_comparison(AluQuery& query, Type source) {
  bool is_float = !is_integer(source) && !is_bits(source);
  std::optional<Comparison> comparison = find_comparison(query.next(), source);
  if (!comparison) return std::nullopt;
  query.take(query.next());
  Lookup lookup{.comparison = *comparison};
  if (query.take("and")) lookup.aux = kAnd;
  if (query.take("or")) lookup.aux = kOr;
  if (query.take("xor")) lookup.aux = kXor;
  lookup.combines = lookup.aux != 0;
  if (comparison->complement) lookup.aux |= kComplement;
  bool may_flush = source == Type::kF32 || source == Type::kF16 || source == Type::kF16x2;
  bool ftz = is_float && may_flush && query.take("ftz");
  lookup.handlers = handlers_for(source, comparison->primitive, ftz);
  return lookup;
}

Type register_kind(Type type) {
  if (type == Type::kF16x2 || type == Type::kBf16x2) return Type::kB32;
  return type == Type::kF16 || type == Type::kBf16 ? Type::kB16 : type;
}

/// Adds the sources `a` and `b`, exchanged if the comparison says so, and the predicate.
Result<AluSpec> finish_comparison(AluQuery& query, AluSpec spec, const Lookup& lookup,
                                  Type source) {
  bool exchange = lookup.comparison.exchange;
  add_operand(spec, 1, exchange ? AluPlace::kB : AluPlace::kA, register_kind(source));
  add_operand(spec, 2, exchange ? AluPlace::kA : AluPlace::kB, register_kind(source));
  if (lookup.combines) add_operand(spec, 3, AluPlace::kCondition, Type::kPred);
  spec.aux = lookup.aux;
  return query.finish(spec, lookup.combines ? 4 : 3);
}

std::optional<Result<AluSpec>> find_setp(AluQuery& query) {
  const auto& operands = query.instruction().operands;
  Type source = query.last_type();
  query.take(ptx::name_of(source));
  std::optional<Lookup> lookup = take_comparison(query, source);
  if (!lookup) return query.refuse_modifiers();
  bool packed = source == Type::kF16x2 || source == Type::kBf16x2;
  bool pair = !operands.empty() && operands[0].kind == Operand::Kind::kPair;
  if (pair && operands[0].elements.size() != 2) return query.refuse("a pair has two predicates");
  AluSpec spec;
  spec.fn =
      pair || packed || lookup->combines ? lookup->handlers.setp_combined : lookup->handlers.setp;
  add_operand(spec, 0, AluPlace::kD, Type::kPred, true, pair ? 0 : -1);
  if (pair) {
    add_operand(spec, 0, AluPlace::kPair, Type::kPred, true, 1);
  } else {
    spec.immediate = uint64_t{kNoSlot} << 16;
  }
  return finish_comparison(query, spec, *lookup, source);
}

/// The value of `true` in a destination type of set; 0 for other types.
uint32_t true_value(Type type, bool packed_source) {
  switch (type) {
    case Type::kU32:
    case Type::kS32:
      return packed_source ? 0xffff : ~0u;
    case Type::kU16:
    case Type::kS16:
      return 0xffff;
    case Type::kF32:
      return 0x3f800000;
    case Type::kF16:
    case Type::kF16x2:
      return 0x3c00;
    case Type::kBf16:
    case Type::kBf16x2:
      return 0x3f80;
    default:
      return 0;
  }
}

std::optional<Result<AluSpec>> find_set(AluQuery& query) {
  const auto& modifiers = query.instruction().modifiers;
  if (modifiers.size() < 3) return query.refuse_modifiers();
  Type source = query.last_type();
  Type result = ptx::type_from_name(modifiers[modifiers.size() - 2]);
  bool half_source = source == Type::kF16 || source == Type::kBf16;
  bool packed = source == Type::kF16x2 || source == Type::kBf16x2;
  bool wide_int = result == Type::kU32 || result == Type::kS32;
  bool narrow_int = result == Type::kU16 || result == Type::kS16;
  bool half_result = result == Type::kF16 || result == Type::kBf16;
  bool valid = packed ? wide_int || result == source
                      : wide_int || half_result || (narrow_int && half_source) ||
                            (result == Type::kF32 && !half_source);
  if (!valid) return query.refuse("this destination type is not supported");
  query.take(ptx::name_of(source));
  query.take(modifiers[modifiers.size() - 2]);
  std::optional<Lookup> lookup = take_comparison(query, source);
  if (!lookup) return query.refuse_modifiers();
  AluSpec spec;
  spec.fn = ptx::bytes_of(result) == 2 ? lookup->handlers.set16 : lookup->handlers.set32;
  spec.immediate = true_value(result, packed);
  add_operand(spec, 0, AluPlace::kD, register_kind(result), true);
  return finish_comparison(query, spec, *lookup, source);
}

template <typename F, typename T>
const MicroOp* testp_op(Context& c, const MicroOp* op) {
  alignas(64) T room[kLanes];
  const T* values = read_lanes<T>(c, op->a, room);
  write_predicate(c, op->d.index, pack_lane_bits([=](int i) {
                                    return F{}.apply(values[i]);
                                  }) ^ complement_mask(op));
  return op + 1;
}

template <typename T, T infinity>
struct Infinite {
  bool apply(T bits) const { return static_cast<T>(bits << 1) == static_cast<T>(infinity << 1); }
};
template <typename T, T infinity>
struct Nan {
  bool apply(T bits) const { return static_cast<T>(bits << 1) > static_cast<T>(infinity << 1); }
};
template <typename T, T infinity>
struct NotFinite {
  bool apply(T bits) const { return (bits & infinity) == infinity; }
};
template <typename T, T infinity>
struct Subnormal {
  bool apply(T bits) const { return (bits & infinity) == 0 && static_cast<T>(bits << 1) != 0; }
};
template <typename T, T infinity>
struct NotNormal {
  bool apply(T bits) const {
    return NotFinite<T, infinity>{}.apply(bits) || Subnormal<T, infinity>{}.apply(bits);
  }
};

template <typename T, T infinity>
OpFn testp_handler(AluQuery& query, uint8_t& aux) {
  if (query.take("infinite")) return testp_op<Infinite<T, infinity>, T>;
  if (query.take("notanumber")) return testp_op<Nan<T, infinity>, T>;
  if (query.take("subnormal")) return testp_op<Subnormal<T, infinity>, T>;
  aux = kComplement;
  if (query.take("finite")) return testp_op<NotFinite<T, infinity>, T>;
  if (query.take("number")) return testp_op<Nan<T, infinity>, T>;
  return query.take("normal") ? testp_op<NotNormal<T, infinity>, T> : nullptr;
}

std::optional<Result<AluSpec>> find_testp(AluQuery& query) {
  Type type = query.last_type();
  query.take(ptx::name_of(type));
  AluSpec spec;
  if (type == Type::kF32) spec.fn = testp_handler<uint32_t, 0x7f800000>(query, spec.aux);
  if (type == Type::kF64) spec.fn = testp_handler<uint64_t, 0x7ff0000000000000>(query, spec.aux);
  return query.finish(spec, {Type::kPred, type});
}

constexpr AluEntry kEntries[] = {{"setp", find_setp}, {"set", find_set}, {"testp", find_testp}};

}  // namespace

std::span<const AluEntry> compare_entries() { return kEntries; }

}  // namespace cb::sim
