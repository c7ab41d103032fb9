// wmma.load and wmma.store: a matrix in memory, whose rows (or columns) are a stride apart, and its
// fragment. The warp reads it in pieces of 16 bytes, one for each lane at a time.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/memory_ops_query.h"
#include "simulator/exec/wmma_fragment.h"

namespace cb::sim {
namespace {

using ptx::Type;

enum class Part : uint8_t { kA, kB, kAccumulator };

/// Bits of MicroOp::aux above those of every access: blocks of eight along M and N (for A and B,
/// the one that they have), as powers of two, and how wide an element is.
constexpr unsigned kShapeShift = 3;

struct FragmentForm {
  unsigned m_log = 0;  ///< accumulators: blocks of rows; A and B: their blocks
  unsigned n_log = 0;  ///< accumulators: blocks of columns
  unsigned bits_log = 0;

  static FragmentForm of(const MicroOp* op) {
    unsigned packed = op->aux >> kShapeShift;
    return {packed & 3, 0, packed >> 2 & 7};
  }
  static FragmentForm of_accumulator(const MicroOp* op) {
    unsigned packed = op->aux >> kShapeShift;
    unsigned shape = packed & 3;
    bool is_small = shape == kSmall;
    return {is_small ? 0 : shape, is_small ? 0 : 2 - shape, 4 + (packed >> 2)};
  }
  /// Of m8n8; other shapes have four blocks, and the logarithm of those along M says all.
  static constexpr unsigned kSmall = 3;

  unsigned bits() const { return 1u << bits_log; }
  /// Of a row of A or a column of B: those of 16 and 32 bits have two lines, .f64 is twice as wide.
  unsigned lines() const { return bits_log >= 4 ? 2 : 1; }
};

/// The matrix as it is in memory, its leading dimension packed: at most 32 of them, and 1 KiB.
struct Packed {
  static constexpr unsigned kMostBytes = 1024;
  unsigned count = 0;  ///< rows, or columns
  unsigned bytes = 0;  ///< of each
  alignas(16) std::byte data[kMostBytes];
};

/// Where the instruction's matrix starts and how far apart its rows are; nullopt after a finding.
struct Placement {
  uint64_t base;
  uint64_t pitch;
};
std::optional<Placement> placement_of(Context& c, const MicroOp* op, unsigned bits,
                                      unsigned packed) {
  auto same = [&]<typename T>(Slot slot, T&& read) -> std::optional<uint64_t> {
    uint64_t first = read(slot, 0);
    if (c.meta[slot.index].uniform()) return first;
    for (int lane = 1; lane < kLanes; ++lane) {
      if (read(slot, lane) == first) continue;
      fault(c, op, Finding::Kind::kIllegalInstruction, lane,
            "the address and the stride of a matrix must be the same in all threads of the warp");
      return std::nullopt;
    }
    return first;
  };
  auto word = [&](Slot slot, int lane) -> uint64_t {
    const Meta& meta = c.meta[slot.index];
    return meta.is_vector ? vector_of<uint32_t>(c, slot)[lane] : affine_lane<uint32_t>(meta, lane);
  };
  auto wide = [&](Slot slot, int lane) -> uint64_t {
    const Meta& meta = c.meta[slot.index];
    return meta.is_vector ? vector_of<uint64_t>(c, slot)[lane] : affine_lane<uint64_t>(meta, lane);
  };
  bool narrow = (op->aux & kNarrowAddress) != 0;
  auto base = narrow ? same(op->a, word) : same(op->a, wide);
  if (!base) return std::nullopt;
  uint64_t pitch = packed;
  if (op->b.index != kNoSlot) {
    auto stride = same(op->b, word);
    if (!stride) return std::nullopt;
    pitch = *stride * bits / 8;
  }
  return Placement{*base + op->immediate, pitch};
}

/// Moves the rows between memory and `matrix`, at most 32 pieces at a time.
template <AccessSpace space>
bool transfer(Context& c, const MicroOp* op, bool write, unsigned bits, Packed& matrix) {
  auto placement = placement_of(c, op, bits, matrix.bytes);
  if (!placement) return false;
  unsigned piece = std::min(matrix.bytes, 16u);
  unsigned per_row = matrix.bytes / piece, pieces = matrix.count * per_row;
  bool narrow = (op->aux & kNarrowAddress) != 0;
  MemoryAccess whole;
  uint32_t mask = c.mask;
  for (unsigned first = 0; first < pieces; first += kLanes) {
    LaneAddresses rows;
    unsigned count = std::min(pieces - first, unsigned{kLanes});
    for (unsigned i = 0; i < count; ++i) {
      uint64_t address = placement->base + (first + i) / per_row * placement->pitch +
                         (first + i) % per_row * piece;
      rows.lanes[i] = narrow ? static_cast<uint32_t>(address) : address;
    }
    c.mask = count == kLanes ? kAllLanes : (1u << count) - 1;
    bool allowed = locate_chosen(c, op, space, piece, write, rows);
    if (allowed) {
      describe_access(c, op, rows, piece,
                      write ? MemoryAccess::Kind::kStore : MemoryAccess::Kind::kLoad);
      if (!write) report_reads(c, rows, piece);
    }
    c.mask = mask;
    if (!allowed) return false;
    for (unsigned i = 0; i < count; ++i) {
      auto* there = reinterpret_cast<std::byte*>(rows.lanes[i]);
      std::byte* here = matrix.data + (first + i) * piece;
      std::memcpy(write ? there : here, write ? here : there, piece);
    }
    if (write && space != AccessSpace::kLocal) note_write(c, rows.lo, rows.hi);
    if (first == 0) {
      whole = c.access;
    } else {
      whole.sectors += c.access.sectors;
      whole.bytes += c.access.bytes;
      whole.conflicts += c.access.conflicts;
      whole.address = std::min(whole.address, c.access.address);
      whole.end = std::max(whole.end, c.access.end);
    }
  }
  c.access = whole;
  return true;
}

/// A or B: `blocks` times eight rows of A (columns of B) of one or two lines.
template <AccessSpace space, Part part, bool across>
const MicroOp* load_operand_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  FragmentForm form = FragmentForm::of(op);
  unsigned blocks = 1u << form.m_log, lines = form.lines(), rows = 8 * blocks;
  unsigned row_bytes = lines * kLineBytes, k = row_bytes * 8 / form.bits();
  Packed matrix;
  matrix.count = across ? k : rows;
  matrix.bytes = across ? rows * form.bits() / 8 : row_bytes;
  if (!transfer<space>(c, op, false, form.bits(), matrix)) return nullptr;
  alignas(16) std::byte turned[Packed::kMostBytes];
  const std::byte* along = matrix.data;
  if constexpr (across) {
    unsigned bytes = form.bits() / 8;
    for (unsigned i = 0; i < k; ++i) {
      for (unsigned row = 0; row < rows; ++row) {
        std::memcpy(turned + row * row_bytes + i * bytes, matrix.data + (i * rows + row) * bytes,
                    bytes);
      }
    }
    along = turned;
  }
  const Slot* slots = list_of(c, op);
  bool is_double = form.bits() == 64;
  for (unsigned index = 0; index < op->list_size; ++index) {
    if (slots[index].index == kNoSlot) continue;
    std::byte* to = vector_of<std::byte>(c, slots[index]);
    c.meta[slots[index].index].is_vector = 1;
    for (unsigned row = 0; is_double && row < 8; ++row) {
      std::memcpy(to + row * row_bytes, along + row * row_bytes, row_bytes);
    }
    for (unsigned place = 0; !is_double && place < blocks * lines; ++place) {
      unsigned block = place / lines, line = place % lines;
      unsigned of_place = part == Part::kA ? wmma_register_of_a(block, line, blocks, lines)
                                           : wmma_register_of_b(block, line, lines);
      if (of_place != index % (blocks * lines)) continue;
      for (unsigned row = 0; row < 8; ++row) {
        std::memcpy(to + row * kLineBytes,
                    along + (8 * block + row) * row_bytes + line * kLineBytes, kLineBytes);
      }
    }
  }
  return op + 1;
}

/// Calls use(register, byte in it, byte in the packed matrix) for each element of an accumulator.
template <bool across, typename Use>
void for_each_element(const FragmentForm& form, Use&& use) {
  unsigned m_blocks = 1u << form.m_log, n_blocks = 1u << form.n_log, bytes = form.bits() / 8;
  unsigned per_block = bytes == 2 ? 1 : 2;
  for (unsigned row = 0; row < 8 * m_blocks; ++row) {
    for (unsigned column = 0; column < 8 * n_blocks; ++column) {
      unsigned first = wmma_accumulator_block(row / 8, column / 8, m_blocks, n_blocks) * per_block;
      unsigned lane = row % 8 * 4 + column % 8 / 2;
      unsigned index = first + (bytes == 2 ? 0 : column % 2);
      unsigned in_register = bytes == 2 ? lane * 4 + column % 2 * 2 : lane * bytes;
      unsigned place = across ? column * 8 * m_blocks + row : row * 8 * n_blocks + column;
      use(index, in_register, place * bytes);
    }
  }
}

template <bool across>
Packed accumulator_room(const FragmentForm& form) {
  Packed matrix;
  unsigned rows = 8u << form.m_log, columns = 8u << form.n_log;
  matrix.count = across ? columns : rows;
  matrix.bytes = (across ? rows : columns) * form.bits() / 8;
  return matrix;
}

template <AccessSpace space, bool across>
const MicroOp* load_accumulator_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  FragmentForm form = FragmentForm::of_accumulator(op);
  Packed matrix = accumulator_room<across>(form);
  if (!transfer<space>(c, op, false, form.bits(), matrix)) return nullptr;
  const Slot* slots = list_of(c, op);
  alignas(64) std::byte sink[kLanes * sizeof(uint64_t)];
  std::byte* registers[8];
  for (unsigned i = 0; i < op->list_size; ++i) {
    registers[i] = result_lanes<std::byte>(c, slots[i], sink);
  }
  unsigned bytes = form.bits() / 8;
  for_each_element<across>(form, [&](unsigned index, unsigned at, unsigned place) {
    std::memcpy(registers[index] + at, matrix.data + place, bytes);
  });
  return op + 1;
}

template <AccessSpace space, bool across>
const MicroOp* store_accumulator_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  FragmentForm form = FragmentForm::of_accumulator(op);
  Packed matrix = accumulator_room<across>(form);
  unsigned bytes = form.bits() / 8;
  auto pack = [&](const auto* const* words) {
    for_each_element<across>(form, [&](unsigned index, unsigned at, unsigned place) {
      std::memcpy(matrix.data + place, reinterpret_cast<const std::byte*>(words[index]) + at,
                  bytes);
    });
  };
  if (bytes == 8) {
    pack(FragmentWords<uint64_t, 2>(c, list_of(c, op), op->list_size).words());
  } else {
    pack(FragmentWords<uint32_t, 8>(c, list_of(c, op), op->list_size).words());
  }
  return transfer<space>(c, op, true, form.bits(), matrix) ? op + 1 : nullptr;
}

/// What the modifiers say.
struct Move {
  Part part = Part::kA;
  bool is_load = true;
  bool across = false;
  AccessSpace space = AccessSpace::kGeneric;
  unsigned registers = 0;
  Type type = Type::kB32;
  uint8_t shape = 0;  ///< for MicroOp::aux
};

template <AccessSpace space>
OpFn handler_in(const Move& move) {
  if (move.part == Part::kAccumulator) {
    if (move.is_load) {
      return move.across ? load_accumulator_op<space, true> : load_accumulator_op<space, false>;
    }
    return move.across ? store_accumulator_op<space, true> : store_accumulator_op<space, false>;
  }
  if (move.part == Part::kA) {
    return move.across ? load_operand_op<space, Part::kA, true>
                       : load_operand_op<space, Part::kA, false>;
  }
  return move.across ? load_operand_op<space, Part::kB, true>
                     : load_operand_op<space, Part::kB, false>;
}

unsigned log2_of(unsigned value) { return static_cast<unsigned>(std::countr_zero(value)); }

bool take_operand_type(OpQuery& query, const WmmaShape& shape, Move& move) {
  auto type = take_matrix_type(query);
  if (!type) return false;
  unsigned lines = wmma_lines(*type, shape), bits = bits_of(*type);
  if (lines == 0 || (bits < 8 && move.across)) return false;
  unsigned blocks = move.part == Part::kA ? shape.m_blocks : shape.n_blocks;
  bool is_double = *type == MatrixType::kF64;
  move.registers = is_double ? 1 : wmma_operand_registers(*type, blocks, lines);
  if (is_double) move.type = Type::kF64;
  move.shape = static_cast<uint8_t>(log2_of(blocks) | log2_of(bits) << 2);
  return true;
}

bool take_accumulator_type(OpQuery& query, const WmmaShape& shape, Move& move) {
  auto type = take_accumulator(query);
  if (!type || !wmma_accumulates(*type, shape)) return false;
  unsigned bits = *type == Accumulator::kF16 ? 16 : *type == Accumulator::kF64 ? 64 : 32;
  unsigned blocks = shape.m_blocks * shape.n_blocks;
  move.registers = bits == 16 ? blocks : 2 * blocks;
  if (bits == 64) move.type = Type::kF64;
  unsigned code = blocks == 1 ? FragmentForm::kSmall : log2_of(shape.m_blocks);
  move.shape = static_cast<uint8_t>(code | (log2_of(bits) - 4) << 2);
  return true;
}

std::optional<Result<OpSpec>> find_move(OpQuery& query) {
  Move move;
  move.is_load = query.take("load");
  bool whole = move.is_load || query.take("store");
  int part = move.is_load ? query.take_one({"a", "b", "c"}) : query.take_one({"d"}) + 2;
  whole = whole && part >= 0 && (move.is_load || part == 2) && query.take("sync") &&
          query.take("aligned");
  move.part = part == 0 ? Part::kA : part == 1 ? Part::kB : Part::kAccumulator;
  bool is_column = query.take("col");
  whole = whole && (is_column || query.take("row"));
  move.across = move.part == Part::kB ? !is_column : is_column;
  const WmmaShape* shape = whole ? take_wmma_shape(query) : nullptr;
  if (shape == nullptr) return query.refuse_modifiers();
  size_t address = move.is_load ? 1 : 0;
  auto space = take_space(query, address);
  if (!space) return tl::unexpected(space.error());
  move.space = *space;
  bool is_known = move.part == Part::kAccumulator ? take_accumulator_type(query, *shape, move)
                                                  : take_operand_type(query, *shape, move);
  if (!is_known) return query.refuse_modifiers();
  OpSpec spec;
  spec.fn = move.space == AccessSpace::kShared    ? handler_in<AccessSpace::kShared>(move)
            : move.space == AccessSpace::kGeneric ? handler_in<AccessSpace::kGeneric>(move)
                                                  : nullptr;
  spec.aux = static_cast<uint8_t>(move.shape << kShapeShift);
  spec.flags = kOpMemory | kOpBarrier;
  spec.flags |= move.is_load ? kOpLoad : kOpSideEffect | kOpListSource;
  spec.has_site = move.space == AccessSpace::kGeneric;
  if (auto problem =
          add_fragment(query, spec, 1 - address, move.registers, move.type, move.is_load)) {
    return query.refuse(*problem);
  }
  add_address(query, spec, address);
  bool has_stride = query.num_operands() == 3;
  if (has_stride) add_plain(spec, 2, AluPlace::kB, Type::kB32);
  return query.finish(std::move(spec), has_stride ? 3 : 2);
}

constexpr OpEntry kEntries[] = {{"wmma", find_move}};

}  // namespace

std::span<const OpEntry> wmma_move_entries() { return kEntries; }

}  // namespace cb::sim
