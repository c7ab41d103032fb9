#include <fmt/format.h>

#include "simulator/decode/decode.h"

namespace cb::sim {
namespace {

std::string operand(const char* name, Slot slot) {
  return slot.index == 0xffff ? "" : fmt::format(" {}={}", name, slot.index);
}

void append(const FunctionCode& code, std::string& out) {
  out += fmt::format("{}: {} slots, {} predicates, {} bytes of local memory\n", code.source->name,
                     code.num_slots, code.num_predicates, code.local_bytes);
  for (size_t i = 0; i < code.ops.size(); ++i) {
    const MicroOp& op = code.ops[i];
    uint32_t index = code.info[i].instruction;
    bool is_end = index >= code.source->body.size() || i + 1 == code.ops.size();
    out += fmt::format("{:5} +{:<3} {}", i, op.stall_cycles,
                       is_end ? "end" : code.source->body[index].full_name());
    if (op.guard >= 0) {
      out += fmt::format(" @{}{}", (op.flags & kOpGuardNegated) != 0 ? "!" : "", op.guard);
    }
    out += operand("d", op.d) + operand("a", op.a) + operand("b", op.b) + operand("c", op.c);
    for (uint32_t k = 0; k < op.list_size && op.list + k < code.lists.size(); ++k) {
      out += fmt::format(" [{}]={}", k, code.lists[op.list + k].index);
    }
    if ((op.flags & kOpControl) != 0) out += fmt::format(" ->{}", op.target);
    if ((op.flags & kOpControl) != 0 && op.immediate != 0) out += " wait-loop";
    for (int k = 0; k < op.num_waits; ++k) out += fmt::format(" wait:{}", op.waits[k]);
    out += '\n';
  }
}

}  // namespace

std::string disassemble(const Program& program) {
  std::string out;
  for (const auto& code : program.functions) append(*code, out);
  return out;
}

}  // namespace cb::sim
