// cp.async of 4 to 16 bytes per lane, the groups of cp.async and cp.async.bulk, and the stores and
// reductions of registers that tell an mbarrier: st.async and red.async.

#include <fmt/format.h>

#include <cstring>

#include "simulator/exec/async_address.h"
#include "simulator/exec/engine_port.h"
#include "simulator/exec/lane_ops.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

// cp.async. Fields of MicroOp::immediate: the size, and what follows it. The list has the
// destination, the source, and the bytes of the source where they are given.
constexpr uint64_t kSizeMask = 31;
constexpr uint64_t kHasSourceBytes = 32;
constexpr uint64_t kHasIgnore = 64;
constexpr uint64_t kThroughL1 = 128;

/// Appends a piece, to the last one where it is its continuation.
void append_piece(AsyncCopy& copy, const CopyPiece& piece) {
  if (piece.bytes == 0) return;
  if (!copy.pieces.empty()) {
    CopyPiece& last = copy.pieces.back();
    bool same_kind = (last.source == 0) == (piece.source == 0);
    bool follows = piece.source == 0 || piece.source == last.source + last.bytes;
    if (same_kind && follows && piece.destination == last.destination + last.bytes) {
      last.bytes += piece.bytes;
      return;
    }
  }
  copy.pieces.push_back(piece);
}

const MicroOp* copy_op(Context& c, const MicroOp* op) {
  ListedAddress destination(c, op, 0, 0);
  ListedAddress source(c, op, kAddressEntries, 1);
  auto size = static_cast<uint32_t>(op->immediate & kSizeMask);
  std::optional<ListedValue<uint32_t>> source_bytes;
  if ((op->immediate & kHasSourceBytes) != 0) source_bytes.emplace(c, op, 2 * kAddressEntries);
  uint32_t ignored = (op->immediate & kHasIgnore) != 0 ? read_condition(c, op) : 0;
  AsyncCopy copy;
  copy.carrier = AsyncCopy::Carrier::kLoadStore;
  copy.group = AsyncCopy::Group::kAsync;
  copy.through_l1 = (op->immediate & kThroughL1) != 0;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto to =
        locate_shared(c, op, lane, destination.of(lane), SharedWindow::kOwn,
                      {.what = "the destination", .bytes = size, .align = size, .write = true});
    if (!to) return nullptr;
    uint32_t bytes = source_bytes ? source_bytes->of(lane) : size;
    if ((ignored >> lane & 1) != 0) bytes = 0;
    if (bytes > size) {
      return fault(c, op, Finding::Kind::kIllegalInstruction, lane,
                   fmt::format("{} bytes of source for {} of destination", bytes, size));
    }
    uint64_t from = source.of(lane);
    if (bytes != 0 &&
        locate_global(c, op, lane, from, {.what = "the source", .bytes = bytes, .align = size}) ==
            nullptr) {
      return nullptr;
    }
    copy.add_block(to->block);
    append_piece(copy, {.source = from, .destination = to->address, .bytes = bytes});
    append_piece(copy, {.destination = to->address + bytes, .bytes = size - bytes});
  }
  return start_copy(c, op, c.mask, std::move(copy)) ? op + 1 : nullptr;
}

std::optional<Result<OpSpec>> find_copy(OpQuery& query) {
  bool through_l1 = query.take("ca");
  bool known = through_l1 || query.take("cg");
  known &= query.take("shared") || query.take("shared::cta");
  known &= query.take("global");
  bool has_policy = query.take("L2::cache_hint");
  query.take_one({"L2::64B", "L2::128B", "L2::256B"});
  if (!query.is(2, Operand::Kind::kImmediate)) return query.refuse("the size must be a constant");
  uint64_t size = query.operand(2).bits;
  if (size != 16 && (!through_l1 || (size != 4 && size != 8))) {
    return query.refuse(fmt::format("a size of {}", size));
  }
  OpSpec spec;
  if (known) spec.fn = copy_op;
  spec.flags = kOpOrdered | kOpSideEffect | kOpListSource;
  spec.immediate = size | (through_l1 ? kThroughL1 : 0);
  add_listed_address(query, spec, 0, 0);
  add_listed_address(query, spec, 1, 1);
  size_t operands = query.num_operands() - (has_policy ? 1 : 0);
  if (operands == 4 && query.type_of(query.operand(3)) == Type::kPred) {
    spec.immediate |= kHasIgnore;
    add_plain(spec, 3, AluPlace::kCondition, Type::kPred);
  } else if (operands == 4) {
    spec.immediate |= kHasSourceBytes;
    add_listed(spec, 3, Type::kU32, false);
  }
  return query.finish(std::move(spec), (operands == 4 ? 4 : 3) + (has_policy ? 1 : 0));
}

template <CopyGroupKind kind>
const MicroOp* commit_op(Context& c, const MicroOp* op) {
  commit_copies(c, kind);
  return op + 1;
}

template <CopyGroupKind kind, bool reads_only>
const MicroOp* wait_op(Context& c, const MicroOp* op) {
  auto allowed = static_cast<uint32_t>(op->immediate);
  return wait_for_copies(c, op, kind, allowed, reads_only) ? op + 1 : nullptr;
}

const MicroOp* wait_all_op(Context& c, const MicroOp* op) {
  commit_copies(c, CopyGroupKind::kAsync);
  return wait_for_copies(c, op, CopyGroupKind::kAsync, 0, false) ? op + 1 : nullptr;
}

std::optional<Result<OpSpec>> find_group(OpQuery& query) {
  bool bulk = query.take("bulk");
  OpSpec spec;
  spec.flags = kOpOrdered | kOpSideEffect;
  if (query.take("commit_group")) {
    spec.fn = bulk ? commit_op<CopyGroupKind::kBulk> : commit_op<CopyGroupKind::kAsync>;
    return query.finish(std::move(spec), 0);
  }
  if (!bulk && query.take("wait_all")) {
    spec.fn = wait_all_op;
    return query.finish(std::move(spec), 0);
  }
  if (!query.take("wait_group")) return query.refuse_modifiers();
  if (!query.is(0, Operand::Kind::kImmediate)) {
    return query.refuse("the number of groups must be a constant");
  }
  spec.immediate = query.operand(0).bits;
  if (!bulk) {
    spec.fn = wait_op<CopyGroupKind::kAsync, false>;
  } else if (query.take("read")) {
    spec.fn = wait_op<CopyGroupKind::kBulk, true>;
  } else {
    spec.fn = wait_op<CopyGroupKind::kBulk, false>;
  }
  return query.finish(std::move(spec), 1);
}

/// cp.async and the groups; bulk copies and mbarrier arrivals are in other files.
std::optional<Result<OpSpec>> find_cp(OpQuery& query) {
  if (!query.has("async") || query.has("mbarrier")) return std::nullopt;
  bool is_group = query.has("commit_group") || query.has("wait_group") || query.has("wait_all");
  if (query.has("bulk") && !is_group) return std::nullopt;
  query.take("async");
  return is_group ? find_group(query) : find_copy(query);
}

// st.async and red.async. The list has the destination, the mbarrier and the values. Fields of
// MicroOp::immediate of red.async: the index in kOperations, and the type.
constexpr uint32_t kFirstValue = 2 * kAddressEntries;
constexpr std::string_view kOperations[] = {"add", "min", "max", "inc", "dec", "and", "or", "xor"};

template <typename T>
const MicroOp* send_op(Context& c, const MicroOp* op, ReduceFn reduce) {
  ListedAddress destination(c, op, 0, 0);
  ListedAddress barrier(c, op, kAddressEntries, 1);
  uint32_t elements = op->list_size - kFirstValue;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    auto bytes = static_cast<uint32_t>(elements * sizeof(T));
    auto to =
        locate_shared(c, op, lane, destination.of(lane), SharedWindow::kCluster,
                      {.what = "the destination", .bytes = bytes, .align = bytes, .write = true});
    if (!to) return nullptr;
    auto told = locate_barrier(c, op, lane, barrier.of(lane), SharedWindow::kCluster);
    if (!told) return nullptr;
    if (told->block != to->block) {
      return fault(c, op, Finding::Kind::kIllegalAddress, lane,
                   "the mbarrier is in another block than the destination");
    }
    AsyncCopy copy;
    copy.carrier = AsyncCopy::Carrier::kStore;
    copy.reduce = reduce;
    copy.pieces.push_back({.destination = to->address, .bytes = bytes});
    for (uint32_t k = 0; k < elements; ++k) {
      T value = ListedValue<T>(c, op, kFirstValue + k).of(lane);
      const auto* begin = reinterpret_cast<const std::byte*>(&value);
      copy.data.insert(copy.data.end(), begin, begin + sizeof value);
    }
    copy.signals.push_back({told->block, told->address, {.complete_bytes = bytes}});
    copy.add_block(to->block);
    if (!start_copy(c, op, uint32_t{1} << lane, std::move(copy))) return nullptr;
  }
  return op + 1;
}

template <typename T>
const MicroOp* store_async_op(Context& c, const MicroOp* op) {
  return send_op<T>(c, op, nullptr);
}

template <typename T>
const MicroOp* reduce_async_op(Context& c, const MicroOp* op) {
  auto type = static_cast<Type>(op->immediate >> 8 & 0xff);
  return send_op<T>(c, op, find_reduction(kOperations[op->immediate & 0xff], type));
}

/// Takes what st.async and red.async have in common, and lists the operands.
std::optional<Result<OpSpec>> finish_send(OpQuery& query, OpSpec spec, OpFn narrow, OpFn wide) {
  query.take("shared::cluster");
  bool tells = query.take("mbarrier::complete_tx::bytes");
  unsigned elements = take_elements(query);
  Type type = take_data_type(query);
  unsigned bytes = ptx::bytes_of(type);
  if (elements > 4) return query.refuse_modifiers();
  auto width = data_width(query, 1, type, elements);
  if (!width) return tl::unexpected(width.error());
  if (tells && *width == bytes) spec.fn = bytes == 4 ? narrow : bytes == 8 ? wide : nullptr;
  spec.flags = kOpOrdered | kOpSideEffect | kOpListSource;
  add_listed_address(query, spec, 0, 0);
  add_listed_address(query, spec, 2, 1);
  for (unsigned k = 0; k < elements; ++k) {
    add_listed(spec, 1, type, false, elements == 1 ? -1 : static_cast<int>(k));
  }
  return query.finish(std::move(spec), 3);
}

std::optional<Result<OpSpec>> find_store_async(OpQuery& query) {
  if (!query.take("async")) return std::nullopt;
  query.take("weak");
  return finish_send(query, {}, store_async_op<uint32_t>, store_async_op<uint64_t>);
}

std::optional<Result<OpSpec>> find_reduce_async(OpQuery& query) {
  if (!query.take("async")) return std::nullopt;
  bool ordered = query.take("relaxed") && query.take("cluster");
  Type type = query.last_type();
  for (size_t i = 0; i < std::size(kOperations); ++i) {
    if (!query.take(kOperations[i])) continue;
    bool is_wide = ptx::bytes_of(type) == 8;
    bool known = find_reduction(kOperations[i], type) != nullptr &&
                 (!is_wide || kOperations[i] == "add") && is_integer(type) | is_bits(type);
    if (!known || !ordered) return query.refuse_modifiers();
    OpSpec spec;
    spec.immediate = i | static_cast<uint64_t>(type) << 8;
    return finish_send(query, std::move(spec), reduce_async_op<uint32_t>,
                       reduce_async_op<uint64_t>);
  }
  return query.refuse_modifiers();
}

constexpr OpEntry kEntries[] = {
    {"cp", find_cp}, {"st", find_store_async}, {"red", find_reduce_async}};

}  // namespace

std::span<const OpEntry> async_entries() { return kEntries; }

}  // namespace cb::sim
