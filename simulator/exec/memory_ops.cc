// find_memory_op: fences, hints that change nothing, and the families of
// the neighbouring files.

#include <array>

#include "simulator/exec/engine_port.h"
#include "simulator/exec/matrix_fragments.h"
#include "simulator/exec/memory_ops_query.h"

namespace cb::sim {
namespace {

using ptx::Type;

const MicroOp* nop_op(Context&, const MicroOp* op) { return op + 1; }

template <Scope scope>
const MicroOp* fence_op(Context& c, const MicroOp* op) {
  fence(c, scope);
  return op + 1;
}

OpFn fence_handler(Scope scope) {
  constexpr OpFn kHandlers[] = {fence_op<Scope::kBlock>, fence_op<Scope::kCluster>,
                                fence_op<Scope::kDevice>, fence_op<Scope::kSystem>};
  return kHandlers[static_cast<size_t>(scope)];
}

/// Takes the scope of a fence; nullopt without one.
std::optional<Scope> take_scope(OpQuery& query) {
  constexpr Scope kScopes[] = {Scope::kBlock, Scope::kCluster, Scope::kDevice, Scope::kSystem,
                               Scope::kDevice};
  int index = query.take_one({"cta", "cluster", "gpu", "sys", "gl"});
  if (index < 0) return std::nullopt;
  return kScopes[index];
}

/// Proxies do not exist here: all accesses go one way, so that a proxy fence orders nothing that a
/// fence of its scope does not order.
std::optional<Result<OpSpec>> find_proxy_fence(OpQuery& query) {
  query.take_one({"alias", "async", "async::generic", "async.global", "tensormap::generic"});
  query.take_one({"acquire", "release"});
  query.take("sync_restrict::shared::cta");
  query.take("sync_restrict::shared::cluster");
  query.take_one({"global", "shared", "shared::cta", "shared::cluster"});
  OpSpec spec;
  spec.fn = fence_handler(take_scope(query).value_or(Scope::kBlock));
  spec.flags = kOpOrdered;
  // .tensormap::generic.acquire names an address and a size.
  return query.finish(std::move(spec), query.num_operands());
}

std::optional<Result<OpSpec>> find_fence(OpQuery& query) {
  if (query.take("proxy")) return find_proxy_fence(query);
  OpSpec spec;
  spec.flags = kOpOrdered;
  if (query.take("mbarrier_init")) {
    query.take("release");
    query.take("cluster");
    spec.fn = fence_handler(Scope::kBlock);
    return query.finish(std::move(spec), 0);
  }
  bool is_membar = query.opcode() == "membar";
  if (!is_membar) {
    query.take_one({"sc", "acq_rel", "acquire", "release"});  // none: .acq_rel
    query.take("sync_restrict::shared::cta");
    query.take("sync_restrict::shared::cluster");
  }
  if (auto scope = take_scope(query)) spec.fn = fence_handler(*scope);
  return query.finish(std::move(spec), 0);
}

/// Hints about caches: nothing that a program computes depends on them.
std::optional<Result<OpSpec>> find_prefetch(OpQuery& query) {
  bool is_map = query.take("tensormap");
  is_map ? query.take_one({"const", "param"}) : query.take_one({"global", "local"});
  int level = is_map ? 0 : query.take_one({"L1", "L2", "L2::evict_last", "L2::evict_normal"});
  OpSpec spec;
  if (level >= 0) spec.fn = nop_op;
  return query.finish(std::move(spec), 1);
}

std::optional<Result<OpSpec>> find_cache_control(OpQuery& query) {
  query.take("global");
  int level = query.take_one({"L2", "L2::evict_normal"});
  OpSpec spec;
  if (level >= 0) spec.fn = nop_op;
  return query.finish(std::move(spec), 2);
}

/// A cache policy is opaque, and no access looks at it.
const MicroOp* policy_op(Context& c, const MicroOp* op) {
  write_uniform<uint64_t>(c, op->d, 0);
  return op + 1;
}

std::optional<Result<OpSpec>> find_createpolicy(OpQuery& query) {
  bool known = query.take_one({"fractional", "range", "cvt"}) >= 0;
  query.take("global");
  while (query.take_one({"L2", "L2::evict_last", "L2::evict_normal", "L2::evict_first",
                         "L2::evict_unchanged"}) >= 0) {
  }
  query.take("b64");
  OpSpec spec;
  if (known) spec.fn = policy_op;
  spec.flags = kOpPure;
  add_plain(spec, 0, AluPlace::kD, Type::kB64, true);
  return query.finish(std::move(spec), query.num_operands());
}

constexpr OpEntry kEntries[] = {
    {"fence", find_fence},
    {"membar", find_fence},
    {"prefetch", find_prefetch},
    {"prefetchu", find_prefetch},
    {"discard", find_cache_control},
    {"applypriority", find_cache_control},
    {"createpolicy", find_createpolicy},
};

}  // namespace

std::span<const OpEntry> fence_entries() { return kEntries; }

std::optional<Result<OpSpec>> find_memory_op(const ptx::Instruction& instruction,
                                             const OpContext& context) {
  const std::array families = {async_entries(),       bulk_entries(),     tensor_entries(),
                               tensor_map_entries(),  mbarrier_entries(), load_entries(),
                               store_entries(),       atomic_entries(),   multimem_entries(),
                               address_entries(),     stack_entries(),    cluster_address_entries(),
                               matrix_move_entries(), mma_entries(),      wgmma_entries(),
                               wmma_entries(),        fence_entries()};
  return find_in(families, instruction, context);
}

}  // namespace cb::sim
