// Clusters as instructions see them: mapa, getctarank, barrier.cluster and %is_explicit_cluster;
// and griddepcontrol, which is about kernels that overlap.

#include <fmt/format.h>

#include "simulator/exec/engine_port.h"
#include "simulator/exec/lane_ops.h"
#include "simulator/exec/memory_ops_query.h"
#include "simulator/exec/shared_window.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using ptx::Type;

template <typename T>
const MicroOp* mapa_op(Context& c, const MicroOp* op) {
  constexpr bool kGeneric = sizeof(T) == 8;
  Block& own = *c.block;
  bool in_window = op->aux != 0;
  alignas(64) T room[kLanes];
  alignas(64) uint32_t rank_room[kLanes];
  alignas(64) T result[kLanes] = {};
  const T* addresses = read_lanes<T>(c, op->a, room);
  const uint32_t* ranks = read_lanes<uint32_t>(c, op->b, rank_room);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uint64_t address = static_cast<T>(addresses[lane] + op->immediate);
    uint32_t rank = ranks[lane];
    if (rank >= cluster_blocks(own)) {
      return fault(
          c, op, Finding::Kind::kIllegalAddress, lane,
          fmt::format("the memory of block {} of a cluster of {}", rank, cluster_blocks(own)));
    }
    if (in_window) {
      result[lane] = static_cast<T>(mapped_shared_address(shared_offset(address), rank));
      continue;
    }
    std::optional<uint32_t> from = kGeneric ? rank_of_shared(own, address) : std::nullopt;
    if (!from) {
      return fault(c, op, Finding::Kind::kIllegalAddress, lane,
                   fmt::format("{:#x} is no address of the cluster's shared memory", address),
                   address);
    }
    result[lane] = static_cast<T>(address - shared_base_of(own, *from) + shared_base_of(own, rank));
  }
  write_lanes<T>(c, op->d, [&](int i) { return result[i]; });
  return op + 1;
}

std::optional<Result<OpSpec>> find_mapa(OpQuery& query) {
  bool in_window = query.take("shared::cluster");
  int type = query.take_one({"u32", "u64"});
  if (!in_window && type == 0) return query.refuse("generic addresses have 64 bits");
  OpSpec spec;
  if (type == 0) spec.fn = mapa_op<uint32_t>;
  if (type == 1) spec.fn = mapa_op<uint64_t>;
  spec.aux = in_window ? 1 : 0;
  spec.flags = kOpPure;
  Type width = type == 0 ? Type::kU32 : Type::kU64;
  add_plain(spec, 0, AluPlace::kD, width, true);
  if (query.is(1, Operand::Kind::kVariable)) {
    if (!in_window) return query.refuse("a shared variable has an address of .shared::cluster");
    add_address(query, spec, 1);
  } else {
    add_plain(spec, 1, AluPlace::kA, width);
  }
  add_plain(spec, 2, AluPlace::kB, Type::kU32);
  return query.finish(std::move(spec), 3);
}

template <typename T>
const MicroOp* getctarank_op(Context& c, const MicroOp* op) {
  Block& own = *c.block;
  bool in_window = op->aux != 0;
  alignas(64) T room[kLanes];
  alignas(64) uint32_t result[kLanes] = {};
  const T* addresses = read_lanes<T>(c, op->a, room);
  for (uint32_t left = c.mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    uint64_t address = addresses[lane];
    std::optional<uint32_t> rank =
        in_window ? rank_of_window(own, address) : rank_of_shared(own, address);
    if (!rank) {
      return fault(c, op, Finding::Kind::kIllegalAddress, lane,
                   fmt::format("{:#x} is no address of the cluster's shared memory", address),
                   address);
    }
    result[lane] = *rank;
  }
  write_lanes<uint32_t>(c, op->d, [&](int i) { return result[i]; });
  return op + 1;
}

std::optional<Result<OpSpec>> find_getctarank(OpQuery& query) {
  bool in_window = query.take("shared::cluster");
  int type = query.take_one({"u32", "u64"});
  if (!in_window && type == 0) return query.refuse("generic addresses have 64 bits");
  OpSpec spec;
  if (type == 0) spec.fn = getctarank_op<uint32_t>;
  if (type == 1) spec.fn = getctarank_op<uint64_t>;
  spec.aux = in_window ? 1 : 0;
  spec.flags = kOpPure;
  add_plain(spec, 0, AluPlace::kD, Type::kU32, true);
  add_plain(spec, 1, AluPlace::kA, type == 0 ? Type::kU32 : Type::kU64);
  return query.finish(std::move(spec), 2);
}

constexpr OpEntry kAddressEntries[] = {{"mapa", find_mapa}, {"getctarank", find_getctarank}};

const MicroOp* arrive_op(Context& c, const MicroOp* op) {
  return arrive_at_cluster(c, op, op->aux != 0) ? op + 1 : nullptr;
}
const MicroOp* wait_op(Context& c, const MicroOp* op) {
  return wait_for_cluster(c, op, op->aux != 0) ? op + 1 : nullptr;
}

/// An arrival releases and a wait acquires, unless .relaxed.
std::optional<Result<OpSpec>> find_cluster_barrier(OpQuery& query) {
  if (query.opcode() != "barrier" || !query.take("cluster")) return std::nullopt;
  OpSpec spec;
  if (query.take("arrive")) {
    spec.fn = arrive_op;
    spec.aux = query.take_one({"relaxed", "release"}) == 0 ? 0 : 1;
  } else if (query.take("wait")) {
    spec.fn = wait_op;
    query.take("acquire");
    spec.aux = 1;
  }
  query.take("aligned");
  spec.flags = kOpBarrier | kOpSideEffect;
  return query.finish(std::move(spec), 0);
}

const MicroOp* launch_dependents_op(Context& c, const MicroOp* op) {
  launch_dependents(c);
  return op + 1;
}
const MicroOp* wait_for_grids_op(Context& c, const MicroOp* op) {
  return wait_for_grids(c, op) ? op + 1 : nullptr;
}

std::optional<Result<OpSpec>> find_griddepcontrol(OpQuery& query) {
  constexpr OpFn kActions[] = {launch_dependents_op, wait_for_grids_op};
  int action = query.take_one({"launch_dependents", "wait"});
  OpSpec spec;
  if (action >= 0) spec.fn = kActions[action];
  spec.flags = kOpBarrier | kOpSideEffect;
  return query.finish(std::move(spec), 0);
}

const MicroOp* is_explicit_op(Context& c, const MicroOp* op) {
  write_predicate(c, op->d.index, c.run->launch.explicit_cluster ? c.mask : 0);
  return op + 1;
}

std::optional<Result<OpSpec>> find_is_explicit(OpQuery& query) {
  if (!query.is(1, Operand::Kind::kSpecial)) return std::nullopt;
  if (query.operand(1).name != "%is_explicit_cluster") return std::nullopt;
  OpSpec spec;
  if (query.take("pred")) spec.fn = is_explicit_op;
  spec.flags = kOpPure;
  add_plain(spec, 0, AluPlace::kD, Type::kPred, true);
  return query.finish(std::move(spec), 2);
}

constexpr OpEntry kGridEntries[] = {{"barrier", find_cluster_barrier},
                                    {"griddepcontrol", find_griddepcontrol},
                                    {"mov", find_is_explicit}};

}  // namespace

std::span<const OpEntry> cluster_address_entries() { return kAddressEntries; }
std::span<const OpEntry> cluster_entries() { return kGridEntries; }

}  // namespace cb::sim
