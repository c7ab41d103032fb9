// cvta and isspacep. Generic addresses are the addresses themselves; shared memory is a window of
// them per block, local memory one per lane.

#include "simulator/exec/affine.h"
#include "simulator/exec/memory_ops_query.h"
#include "simulator/exec/shared_window.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

/// d = a + immediate + base + lane * stride.
const MicroOp* move_window(Context& c, const MicroOp* op, uint64_t base, int64_t stride) {
  const Meta& a = c.meta[op->a.index];
  base += op->immediate;
  Meta r;
  if (!a.is_vector && store_affine<uint64_t>(r, a.base + base, a.stride + stride)) {
    write_affine<uint64_t>(c, op->d, r.base, r.stride);
    return op + 1;
  }
  alignas(64) uint64_t room[kLanes];
  const uint64_t* values = read_lanes<uint64_t>(c, op->a, room);
  auto step = static_cast<uint64_t>(stride);
  write_lanes<uint64_t>(c, op->d,
                        [=](int i) { return values[i] + base + step * static_cast<uint64_t>(i); });
  return op + 1;
}

const MicroOp* cvta_op(Context& c, const MicroOp* op) { return move_window(c, op, 0, 0); }
const MicroOp* cvta_shared_op(Context& c, const MicroOp* op) {
  return move_window(c, op, c.shared_base, 0);
}
const MicroOp* cvta_to_shared_op(Context& c, const MicroOp* op) {
  return move_window(c, op, -c.shared_base, 0);
}
const MicroOp* cvta_local_op(Context& c, const MicroOp* op) {
  return move_window(c, op, c.local_base, static_cast<int64_t>(c.local_lane_bytes));
}
const MicroOp* cvta_to_local_op(Context& c, const MicroOp* op) {
  return move_window(c, op, -c.local_base, -static_cast<int64_t>(c.local_lane_bytes));
}

/// Addresses of other blocks of the cluster, lane by lane.
const MicroOp* cvta_cluster_op(Context& c, const MicroOp* op) {
  if (c.block->cluster == nullptr) return cvta_shared_op(c, op);
  alignas(64) uint64_t room[kLanes];
  const uint64_t* values = read_lanes<uint64_t>(c, op->a, room);
  const Block& own = *c.block;
  write_lanes<uint64_t>(c, op->d, [&](int i) {
    uint64_t address = values[i] + op->immediate;
    // One that names no block stays as it is, and an access by it fails.
    auto rank = rank_of_window(own, address);
    return rank ? shared_base_of(own, *rank) + shared_offset(address) : address;
  });
  return op + 1;
}
const MicroOp* cvta_to_cluster_op(Context& c, const MicroOp* op) {
  if (c.block->cluster == nullptr) return cvta_to_shared_op(c, op);
  alignas(64) uint64_t room[kLanes];
  const uint64_t* values = read_lanes<uint64_t>(c, op->a, room);
  const Block& own = *c.block;
  write_lanes<uint64_t>(c, op->d, [&](int i) -> uint64_t {
    uint64_t address = values[i] + op->immediate;
    auto rank = rank_of_shared(own, address);
    if (!rank || *rank == own.cluster_rank) return address - own.shared_base;
    return mapped_shared_address(static_cast<uint32_t>(address - shared_base_of(own, *rank)),
                                 *rank);
  });
  return op + 1;
}

std::optional<Result<OpSpec>> find_cvta(OpQuery& query) {
  bool to = query.take("to");
  OpSpec spec;
  switch (query.take_one({"global", "const", "param", "param::entry", "shared", "shared::cta",
                          "local", "shared::cluster"})) {
    case 4:
    case 5:
      spec.fn = to ? cvta_to_shared_op : cvta_shared_op;
      break;
    case 6:
      spec.fn = to ? cvta_to_local_op : cvta_local_op;
      break;
    case 7:
      spec.fn = to ? cvta_to_cluster_op : cvta_cluster_op;
      break;
    case -1:
      break;
    default:
      spec.fn = cvta_op;
  }
  Type type = take_data_type(query);
  if (type != Type::kU64) return query.refuse("addresses have 64 bits");
  spec.flags = kOpPure;
  add_plain(spec, 0, AluPlace::kD, type, true);
  if (query.is(1, Operand::Kind::kVariable)) {
    add_address(query, spec, 1);
  } else {
    add_plain(spec, 1, AluPlace::kA, type);
  }
  return query.finish(std::move(spec), 2);
}

struct Window {
  uint64_t begin = 0;
  uint64_t bytes = 0;
};

template <typename Contains>
const MicroOp* test_lanes(Context& c, const MicroOp* op, Contains contains) {
  alignas(64) uint64_t room[kLanes];
  const uint64_t* values = read_lanes<uint64_t>(c, op->a, room);
  uint32_t bits = 0;
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    bits |= static_cast<uint32_t>(contains(values[lane])) << lane;
  }
  write_predicate(c, op->d.index, bits);
  return op + 1;
}

const MicroOp* test_window(Context& c, const MicroOp* op, Window window) {
  return test_lanes(c, op, [=](uint64_t address) { return address - window.begin < window.bytes; });
}

const MicroOp* is_shared_op(Context& c, const MicroOp* op) {
  return test_window(c, op, {c.shared_base, c.shared_bytes});
}
const MicroOp* is_cluster_op(Context& c, const MicroOp* op) {
  return test_lanes(
      c, op, [&](uint64_t address) { return rank_of_shared(*c.block, address).has_value(); });
}
const MicroOp* is_local_op(Context& c, const MicroOp* op) {
  return test_window(c, op, {c.local_base, kLanes * c.local_lane_bytes});
}
const MicroOp* is_param_op(Context& c, const MicroOp* op) {
  return test_window(c, op, {c.run->param_base, c.run->param_bytes});
}
const MicroOp* is_const_op(Context& c, const MicroOp* op) {
  return test_lanes(c, op, [&](uint64_t address) {
    const Allocation* allocation = c.memory->find(address);
    return allocation != nullptr && allocation->constant;
  });
}
const MicroOp* is_global_op(Context& c, const MicroOp* op) {
  return test_lanes(c, op, [](uint64_t address) { return address - kScratchBase >= kArenaBytes; });
}

std::optional<Result<OpSpec>> find_isspacep(OpQuery& query) {
  constexpr OpFn kTests[] = {is_global_op, is_const_op,  is_param_op,   is_param_op,
                             is_shared_op, is_shared_op, is_cluster_op, is_local_op};
  int space = query.take_one({"global", "const", "param", "param::entry", "shared", "shared::cta",
                              "shared::cluster", "local"});
  OpSpec spec;
  if (space >= 0) spec.fn = kTests[space];
  add_plain(spec, 0, AluPlace::kD, Type::kPred, true);
  add_plain(spec, 1, AluPlace::kA, Type::kB64);
  return query.finish(std::move(spec), 2);
}

constexpr OpEntry kEntries[] = {{"cvta", find_cvta}, {"isspacep", find_isspacep}};

}  // namespace

std::span<const OpEntry> address_entries() { return kEntries; }

}  // namespace cb::sim
