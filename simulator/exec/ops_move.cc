// mov between registers, and mov that packs a vector of registers into a wider one or unpacks it.
// The elements of the vector operand are in places kA, kB, kC, kExtra (pack) or kD, kB, kC, kExtra
// (unpack, whose source is in kA), lowest first.

#include <bit>

#include "simulator/exec/affine.h"
#include "simulator/exec/alu_query.h"
#include "simulator/exec/alu_types.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

/// A lane of a 128-bit register, whose slot is always a vector once written.
struct Word128 {
  uint64_t half[2];
};

template <typename T>
const MicroOp* mov_op(Context& c, const MicroOp* op) {
  copy_slot<T>(c, op->d, op->a);
  return op + 1;
}

Slot extra_slot(const MicroOp* op) {
  return {static_cast<uint16_t>(op->immediate), static_cast<uint16_t>(op->immediate >> 16)};
}

/// The low `Part` extended by the next, where neither wraps: 64-bit addresses in two words.
template <typename Whole, typename Part>
bool affine_pack2(const Meta& low, const Meta& high, Meta& r) {
  Meta wide;
  return high.uniform() && affine_widen<Whole, Part>(low, wide) &&
         store_affine<Whole>(r, wide.base | high.base << (8 * sizeof(Part)), wide.stride);
}

template <typename Whole, typename Part>
const MicroOp* pack_op(Context& c, const MicroOp* op) {
  constexpr int kParts = sizeof(Whole) / sizeof(Part);
  Slot slots[4] = {op->a, op->b, op->c, extra_slot(op)};
  bool uniform = true;
  uint64_t base = 0;
  for (int k = 0; k < kParts; ++k) {
    const Meta& part = c.meta[slots[k].index];
    uniform &= part.uniform();
    base |= part.base << (8 * sizeof(Part) * static_cast<unsigned>(k));
  }
  if (uniform) {
    write_affine<Whole>(c, op->d, base, 0);
    return op + 1;
  }
  if constexpr (kParts == 2) {
    Meta r;
    const Meta& low = c.meta[op->a.index];
    if (!low.is_vector && affine_pack2<Whole, Part>(low, c.meta[op->b.index], r)) {
      write_affine<Whole>(c, op->d, r.base, r.stride);
      return op + 1;
    }
  }
  alignas(64) Part room[kParts][kLanes];
  const Part* parts[kParts];
  for (int k = 0; k < kParts; ++k) parts[k] = read_lanes<Part>(c, slots[k], room[k]);
  write_lanes<Whole>(c, op->d, [&](int i) {
    Whole whole = 0;
    for (int k = 0; k < kParts; ++k) {
      whole |=
          static_cast<Whole>(Whole{parts[k][i]} << (8 * sizeof(Part) * static_cast<unsigned>(k)));
    }
    return whole;
  });
  return op + 1;
}

template <typename Whole, typename Part>
void unpack_part(Context& c, const MicroOp* op, Slot to, unsigned k) {
  const Meta& whole = c.meta[op->a.index];
  unsigned shift = 8 * sizeof(Part) * k;
  if (!whole.is_vector) {
    Meta shifted, r;
    bool exact = affine_shift_right<Whole>(whole, shift, shifted);
    // The low bits of a sum depend on the low bits only, so part 0 is exact even if lanes wrap.
    if (k == 0) {
      shifted = whole;
      exact = true;
    }
    if (exact && store_affine<Part>(r, shifted.base, shifted.stride)) {
      write_affine<Part>(c, to, r.base, r.stride);
      return;
    }
  }
  alignas(64) Whole room[kLanes];
  const Whole* source = read_lanes<Whole>(c, op->a, room);
  write_lanes<Part>(c, to, [=](int i) { return static_cast<Part>(source[i] >> shift); });
}

template <typename Whole, typename Part>
const MicroOp* unpack_op(Context& c, const MicroOp* op) {
  constexpr unsigned kParts = sizeof(Whole) / sizeof(Part);
  Slot slots[4] = {op->d, op->b, op->c, extra_slot(op)};
  for (unsigned k = 0; k < kParts; ++k) {
    if (slots[k].index != kNoSlot) unpack_part<Whole, Part>(c, op, slots[k], k);
  }
  return op + 1;
}

/// All lanes of a 128-bit slot; one that was never written reads as zero.
const Word128* read_128(Context& c, Slot slot, Word128* room) {
  const Meta& meta = c.meta[slot.index];
  if (meta.is_vector) return vector_of<Word128>(c, slot);
  for (int i = 0; i < kLanes; ++i) room[i] = {{0, 0}};
  return room;
}

template <typename Value>
void write_128(Context& c, Slot slot, Value&& value) {
  alignas(64) Word128 room[kLanes];
  const Word128* old = read_128(c, slot, room);
  Word128* lanes = vector_of<Word128>(c, slot);
  uint32_t mask = c.full ? kAllLanes : c.mask;
  for (int i = 0; i < kLanes; ++i) lanes[i] = (mask >> i & 1) != 0 ? value(i) : old[i];
  c.meta[slot.index].is_vector = 1;
}

const MicroOp* mov_128_op(Context& c, const MicroOp* op) {
  alignas(64) Word128 room[kLanes];
  const Word128* source = read_128(c, op->a, room);
  write_128(c, op->d, [=](int i) { return source[i]; });
  return op + 1;
}

template <typename Part>
const MicroOp* pack_128_op(Context& c, const MicroOp* op) {
  constexpr int kParts = sizeof(Word128) / sizeof(Part);
  Slot slots[4] = {op->a, op->b, op->c, extra_slot(op)};
  alignas(64) Part room[kParts][kLanes];
  const Part* parts[kParts];
  for (int k = 0; k < kParts; ++k) parts[k] = read_lanes<Part>(c, slots[k], room[k]);
  write_128(c, op->d, [&](int i) {
    Part lane[kParts];
    for (int k = 0; k < kParts; ++k) lane[k] = parts[k][i];
    return std::bit_cast<Word128>(lane);
  });
  return op + 1;
}

template <typename Part>
const MicroOp* unpack_128_op(Context& c, const MicroOp* op) {
  constexpr int kParts = sizeof(Word128) / sizeof(Part);
  Slot slots[4] = {op->d, op->b, op->c, extra_slot(op)};
  alignas(64) Word128 room[kLanes];
  const Part* parts = reinterpret_cast<const Part*>(read_128(c, op->a, room));
  for (int k = 0; k < kParts; ++k) {
    if (slots[k].index == kNoSlot) continue;
    write_lanes<Part>(c, slots[k], [=](int i) { return parts[kParts * i + k]; });
  }
  return op + 1;
}

Type element_type(unsigned bytes) {
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

template <bool pack, typename Whole, typename Part>
constexpr OpFn kVectorOp = pack ? pack_op<Whole, Part> : unpack_op<Whole, Part>;

template <bool pack>
OpFn vector_handler(unsigned whole_bytes, size_t parts) {
  switch (whole_bytes * 16 + parts) {
    case 2 * 16 + 2:
      return kVectorOp<pack, uint16_t, uint8_t>;
    case 4 * 16 + 2:
      return kVectorOp<pack, uint32_t, uint16_t>;
    case 4 * 16 + 4:
      return kVectorOp<pack, uint32_t, uint8_t>;
    case 8 * 16 + 2:
      return kVectorOp<pack, uint64_t, uint32_t>;
    case 8 * 16 + 4:
      return kVectorOp<pack, uint64_t, uint16_t>;
    case 16 * 16 + 2:
      return pack ? pack_128_op<uint64_t> : unpack_128_op<uint64_t>;
    case 16 * 16 + 4:
      return pack ? pack_128_op<uint32_t> : unpack_128_op<uint32_t>;
    default:
      return nullptr;
  }
}

Result<AluSpec> find_vector(AluQuery& query, Type type, bool pack) {
  const auto& operands = query.instruction().operands;
  size_t list = pack ? 1 : 0;
  size_t parts = operands[list].elements.size();
  unsigned bytes = ptx::bytes_of(type);
  AluSpec spec;
  if (is_bits(type) || type == Type::kB128) {
    spec.fn = pack ? vector_handler<true>(bytes, parts) : vector_handler<false>(bytes, parts);
  }
  if (spec.fn == nullptr) return query.refuse("a vector of this many elements is not supported");
  Type element = element_type(bytes / static_cast<unsigned>(parts));
  constexpr AluPlace kPack[] = {AluPlace::kA, AluPlace::kB, AluPlace::kC, AluPlace::kExtra};
  constexpr AluPlace kUnpack[] = {AluPlace::kD, AluPlace::kB, AluPlace::kC, AluPlace::kExtra};
  for (size_t k = 0; k < parts; ++k) {
    add_operand(spec, list, pack ? kPack[k] : kUnpack[k], element, !pack, static_cast<int>(k));
  }
  add_operand(spec, pack ? 0 : 1, pack ? AluPlace::kD : AluPlace::kA, type, pack);
  return query.finish(spec, 2);
}

std::optional<Result<AluSpec>> find_mov(AluQuery& query) {
  if (query.has("pred")) return std::nullopt;
  const auto& operands = query.instruction().operands;
  Type type = query.take_type();
  if (operands.size() == 2) {
    if (operands[1].kind == Operand::Kind::kVector) return find_vector(query, type, true);
    if (operands[0].kind == Operand::Kind::kVector) return find_vector(query, type, false);
  }
  AluSpec spec;
  if (is_integer(type) || is_bits(type) || type == Type::kF32 || type == Type::kF64) {
    spec.fn =
        for_width(type, [](auto tag) -> OpFn { return mov_op<typename decltype(tag)::type>; });
  }
  if (type == Type::kB128) spec.fn = mov_128_op;
  return query.finish(spec, {type, type});
}

constexpr AluEntry kEntries[] = {{"mov", find_mov}};

}  // namespace

std::span<const AluEntry> move_entries() { return kEntries; }

}  // namespace cb::sim
