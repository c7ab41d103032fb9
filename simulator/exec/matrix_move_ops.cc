// ldmatrix, stmatrix and movmatrix: matrices of 8 by 8 elements of 16 bits. A row is 16 bytes in
// memory, and in a register the four lanes of the row's number times four; so without .trans a row
// is copied as it is.

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "simulator/exec/matrix_fragments.h"
#include "simulator/exec/memory_ops_lists.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {

std::optional<std::string> add_fragment(const OpQuery& query, OpSpec& spec, size_t index,
                                        unsigned count, ptx::Type type, bool is_destination) {
  if (!query.is(index, ptx::Operand::Kind::kVector) ||
      query.operand(index).elements.size() != count) {
    return fmt::format("operand {} must be a list of {}", index + 1, count);
  }
  for (unsigned i = 0; i < count; ++i) {
    add_listed(spec, index, type, is_destination, static_cast<int>(i));
  }
  return std::nullopt;
}

namespace {

constexpr int kRows = 8;
constexpr unsigned kRowBytes = 16;

/// Eight rows of eight 16-bit elements become columns.
void transpose_halves(const uint16_t* from, uint16_t* to) {
  for (int row = 0; row < kRows; ++row) {
    for (int column = 0; column < kRows; ++column) {
      to[column * kRows + row] = from[row * kRows + column];
    }
  }
}

/// Only the lanes whose registers hold addresses of rows take part in the access.
class RowLanes {
 public:
  RowLanes(Context& c, unsigned matrices) : c_(c), mask_(c.mask) {
    c.mask = matrices == 4 ? kAllLanes : (1u << (matrices * kRows)) - 1;
  }
  ~RowLanes() { c_.mask = mask_; }
  RowLanes(const RowLanes&) = delete;
  RowLanes& operator=(const RowLanes&) = delete;

 private:
  Context& c_;
  uint32_t mask_;
};

template <AccessSpace space>
bool locate_rows(Context& c, const MicroOp* op, bool write, LaneAddresses& rows) {
  if (!locate<space>(c, op, kRowBytes, write, rows)) return false;
  if (rows.region == LaneAddresses::Region::kShared) return true;
  int lane = std::countr_zero(c.mask);
  fault(c, op, Finding::Kind::kIllegalAddress, lane, "a matrix must be in shared memory",
        rows.at(lane), kRowBytes, write);
  return false;
}

template <AccessSpace space, bool transposed>
const MicroOp* load_matrix_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  RowLanes lanes(c, op->list_size);
  LaneAddresses rows;
  if (!locate_rows<space>(c, op, false, rows)) return nullptr;
  describe_access(c, op, rows, kRowBytes, MemoryAccess::Kind::kLoad);
  report_reads(c, rows, kRowBytes);
  const Slot* slots = list_of(c, op);
  alignas(64) uint32_t sink[kLanes];
  for (int matrix = 0; matrix < op->list_size; ++matrix) {
    uint32_t* to = result_lanes<uint32_t>(c, slots[matrix], sink);
    alignas(64) uint16_t loaded[kRows * kRows];
    auto* bytes =
        transposed ? reinterpret_cast<std::byte*>(loaded) : reinterpret_cast<std::byte*>(to);
    for (int row = 0; row < kRows; ++row) {
      std::memcpy(bytes + row * 16, reinterpret_cast<const void*>(rows.at(matrix * kRows + row)),
                  kRowBytes);
    }
    if (transposed) transpose_halves(loaded, reinterpret_cast<uint16_t*>(to));
  }
  return op + 1;
}

template <AccessSpace space, bool transposed>
const MicroOp* store_matrix_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  FragmentWords<uint32_t, 4> matrices(c, list_of(c, op), op->list_size);
  RowLanes lanes(c, op->list_size);
  LaneAddresses rows;
  if (!locate_rows<space>(c, op, true, rows)) return nullptr;
  describe_access(c, op, rows, kRowBytes, MemoryAccess::Kind::kStore);
  for (int matrix = 0; matrix < op->list_size; ++matrix) {
    const uint32_t* from = matrices.words()[matrix];
    alignas(64) uint16_t columns[kRows * kRows];
    if (transposed) transpose_halves(reinterpret_cast<const uint16_t*>(from), columns);
    const auto* bytes = transposed ? reinterpret_cast<const std::byte*>(columns)
                                   : reinterpret_cast<const std::byte*>(from);
    for (int row = 0; row < kRows; ++row) {
      std::memcpy(reinterpret_cast<void*>(rows.at(matrix * kRows + row)), bytes + row * 16,
                  kRowBytes);
    }
  }
  note_write(c, rows.lo, rows.hi);
  return op + 1;
}

const MicroOp* move_matrix_op(Context& c, const MicroOp* op) {
  if (!gather_warp(c, op)) return nullptr;
  FragmentWords<uint32_t, 1> from(c, &op->a, 1);
  alignas(64) uint16_t columns[kRows * kRows];
  transpose_halves(reinterpret_cast<const uint16_t*>(from.words()[0]), columns);
  alignas(64) uint32_t sink[kLanes];
  std::memcpy(result_lanes<uint32_t>(c, op->d, sink), columns, sizeof columns);
  return op + 1;
}

struct MatrixMove {
  unsigned matrices = 0;
  bool transposed = false;
  AccessSpace space = AccessSpace::kGeneric;
};

/// The modifiers that ldmatrix and stmatrix share.
Result<MatrixMove> take_matrix_move(OpQuery& query, size_t address) {
  for (const char* shape : {"m16n16", "m8n16", "m16n8"}) {
    if (query.has(shape)) return query.refuse(fmt::format(".{} needs sm_100a", shape));
  }
  MatrixMove move;
  bool whole =
      query.take("sync") && query.take("aligned") && query.take("m8n8") && query.take("b16");
  constexpr std::array kCounts = {1u, 2u, 4u};
  int count = query.take_one({"x1", "x2", "x4"});
  if (!whole || count < 0) return query.refuse_modifiers();
  move.matrices = kCounts[static_cast<size_t>(count)];
  move.transposed = query.take("trans");
  auto space = take_space(query, address);
  if (!space) return tl::unexpected(space.error());
  move.space = *space;
  bool elsewhere = query.has("global") || query.has("const");
  if (elsewhere || (move.space != AccessSpace::kGeneric && move.space != AccessSpace::kShared)) {
    return query.refuse("a matrix must be in shared memory");
  }
  return move;
}

OpFn load_handler(const MatrixMove& move) {
  if (move.space == AccessSpace::kShared) {
    return move.transposed ? load_matrix_op<AccessSpace::kShared, true>
                           : load_matrix_op<AccessSpace::kShared, false>;
  }
  return move.transposed ? load_matrix_op<AccessSpace::kGeneric, true>
                         : load_matrix_op<AccessSpace::kGeneric, false>;
}
OpFn store_handler(const MatrixMove& move) {
  if (move.space == AccessSpace::kShared) {
    return move.transposed ? store_matrix_op<AccessSpace::kShared, true>
                           : store_matrix_op<AccessSpace::kShared, false>;
  }
  return move.transposed ? store_matrix_op<AccessSpace::kGeneric, true>
                         : store_matrix_op<AccessSpace::kGeneric, false>;
}

std::optional<Result<OpSpec>> find_matrix_move(OpQuery& query, bool is_load) {
  size_t address = is_load ? 1 : 0;
  auto move = take_matrix_move(query, address);
  if (!move) return tl::unexpected(move.error());
  OpSpec spec;
  spec.fn = is_load ? load_handler(*move) : store_handler(*move);
  spec.flags = kOpMemory | kOpBarrier;
  spec.flags |= is_load ? kOpLoad : kOpSideEffect | kOpListSource;
  spec.has_site = move->space == AccessSpace::kGeneric;
  if (auto problem =
          add_fragment(query, spec, 1 - address, move->matrices, ptx::Type::kB32, is_load)) {
    return query.refuse(*problem);
  }
  add_address(query, spec, address);
  return query.finish(std::move(spec), 2);
}

std::optional<Result<OpSpec>> find_load_matrix(OpQuery& query) {
  return find_matrix_move(query, true);
}
std::optional<Result<OpSpec>> find_store_matrix(OpQuery& query) {
  return find_matrix_move(query, false);
}

std::optional<Result<OpSpec>> find_move_matrix(OpQuery& query) {
  OpSpec spec;
  bool whole = query.take("sync") && query.take("aligned") && query.take("m8n8") &&
               query.take("trans") && query.take("b16");
  if (whole) spec.fn = move_matrix_op;
  spec.flags = kOpBarrier;
  spec.latency_class = AluSpec::Class::kSpecialFunction;
  add_plain(spec, 0, AluPlace::kD, ptx::Type::kB32, true);
  add_plain(spec, 1, AluPlace::kA, ptx::Type::kB32);
  return query.finish(std::move(spec), 2);
}

constexpr OpEntry kEntries[] = {
    {"ldmatrix", find_load_matrix},
    {"stmatrix", find_store_matrix},
    {"movmatrix", find_move_matrix},
};

}  // namespace

std::span<const OpEntry> matrix_move_entries() { return kEntries; }

}  // namespace cb::sim
