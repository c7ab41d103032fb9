// Logic on predicates: mov.pred, not.pred, and.pred, or.pred, xor.pred. A predicate holds one bit
// per lane, so each is an operation on one word.

#include "simulator/exec/alu_query.h"
#include "simulator/exec/lanes.h"

namespace cb::sim {
namespace {

using ptx::Type;

uint32_t source_a(const Context& c, const MicroOp* op) {
  return c.predicates[op->a.index] ^ ((op->aux & kNegatedA) != 0 ? kAllLanes : 0);
}
uint32_t source_b(const Context& c, const MicroOp* op) {
  return c.predicates[op->b.index] ^ ((op->aux & kNegatedB) != 0 ? kAllLanes : 0);
}

const MicroOp* mov_op(Context& c, const MicroOp* op) {
  write_predicate(c, op->d.index, source_a(c, op));
  return op + 1;
}
const MicroOp* not_op(Context& c, const MicroOp* op) {
  write_predicate(c, op->d.index, ~source_a(c, op));
  return op + 1;
}
const MicroOp* and_op(Context& c, const MicroOp* op) {
  write_predicate(c, op->d.index, source_a(c, op) & source_b(c, op));
  return op + 1;
}
const MicroOp* or_op(Context& c, const MicroOp* op) {
  write_predicate(c, op->d.index, source_a(c, op) | source_b(c, op));
  return op + 1;
}
const MicroOp* xor_op(Context& c, const MicroOp* op) {
  write_predicate(c, op->d.index, source_a(c, op) ^ source_b(c, op));
  return op + 1;
}

template <OpFn fn>
std::optional<Result<AluSpec>> find_unary(AluQuery& query) {
  if (!query.take("pred")) return std::nullopt;
  AluSpec spec;
  spec.fn = fn;
  return query.finish(spec, {Type::kPred, Type::kPred});
}

template <OpFn fn>
std::optional<Result<AluSpec>> find_binary(AluQuery& query) {
  if (!query.take("pred")) return std::nullopt;
  AluSpec spec;
  spec.fn = fn;
  return query.finish(spec, {Type::kPred, Type::kPred, Type::kPred});
}

constexpr AluEntry kEntries[] = {
    {"mov", find_unary<mov_op>}, {"not", find_unary<not_op>},  {"and", find_binary<and_op>},
    {"or", find_binary<or_op>},  {"xor", find_binary<xor_op>},
};

}  // namespace

std::span<const AluEntry> predicate_entries() { return kEntries; }

}  // namespace cb::sim
