// Branches, calls and ends. A group that parts, or moves to another frame, returns nullptr with
// Stop::kSwitch, and the warp chooses anew which group runs.

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstring>

#include "simulator/exec/engine_state.h"
#include "simulator/exec/lanes.h"
#include "simulator/exec/op_spec.h"

namespace cb::sim {
namespace {

constexpr uint32_t kFrameAlign = 16;

/// The lanes for which the operation's guard holds.
uint32_t guarded_lanes(const Context& c, const MicroOp* op) {
  if (op->guard < 0) return c.group_mask;
  uint32_t holds = c.predicates[op->guard];
  if ((op->flags & kOpGuardNegated) != 0) holds = ~holds;
  return c.group_mask & holds;
}

uint32_t place_of_op(const Context& c, const MicroOp* op) {
  return static_cast<uint32_t>(op - c.code->ops.data());
}

const MicroOp* switch_to(Context& c, uint32_t pc) {
  c.group->pc = pc;
  c.stop = Stop::kSwitch;
  return nullptr;
}

/// Leaves the lanes without the guard to go on after the operation. False: no lane has it.
bool narrow_to_guard(Context& c, const MicroOp* op) {
  uint32_t lanes = guarded_lanes(c, op);
  if (lanes == 0) return false;
  if (lanes != c.group_mask) c.engine->split(c, c.group_mask & ~lanes, place_of_op(c, op) + 1);
  return true;
}

const MicroOp* branch_op(Context& c, const MicroOp* op) {
  uint32_t taken = guarded_lanes(c, op);
  if (taken == 0) return op + 1;
  if (taken == c.group_mask) {
    const MicroOp* target = c.code->ops.data() + op->target;
    return (op->aux & 1) != 0 ? c.engine->take_back_edge(c, op, target) : target;
  }
  Group& other = c.engine->split(c, taken, op->target);
  if ((op->aux & 1) != 0 && ++other.back_edges % 64 == 0) ++other.rounds;
  return switch_to(c, place_of_op(c, op) + 1);
}

const MicroOp* branch_index_op(Context& c, const MicroOp* op) {
  if (!narrow_to_guard(c, op)) return op + 1;
  alignas(64) uint32_t room[kLanes];
  const uint32_t* index = read_lanes<uint32_t>(c, op->a, room);
  int first = std::countr_zero(c.group_mask);
  uint32_t chosen = index[first];
  if (chosen >= op->list_size) {
    return fault(c, op, Finding::Kind::kIllegalInstruction, first,
                 fmt::format("index {} of a table of {} branch targets", chosen, op->list_size));
  }
  uint32_t others = 0;
  for (uint32_t left = c.group_mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    if (index[lane] != chosen) others |= 1u << lane;
  }
  if (others != 0) c.engine->split(c, others, place_of_op(c, op));
  return switch_to(c, c.code->branch_targets[op->list + chosen]);
}

std::byte* local_memory(const Context& c, int lane, uint64_t offset) {
  return reinterpret_cast<std::byte*>(c.local_base +
                                      static_cast<uint64_t>(lane) * c.local_lane_bytes + offset);
}

bool same_sizes(const std::vector<CallSite::Copy>& copies,
                const std::vector<ptx::Variable>& variables) {
  return std::equal(copies.begin(), copies.end(), variables.begin(), variables.end(),
                    [](const CallSite::Copy& copy, const ptx::Variable& variable) {
                      return copy.bytes == variable.bytes;
                    });
}

const MicroOp* enter(Context& c, const MicroOp* op, const FunctionCode& callee) {
  const CallSite& site = c.code->calls[op->target];
  Frame& caller = *c.frame;
  uint64_t offset = caller.local_offset + caller.code->local_bytes;
  offset = (offset + kFrameAlign - 1) / kFrameAlign * kFrameAlign;
  int first = std::countr_zero(c.group_mask);
  uint64_t limit = c.local_lane_bytes;
  if (c.warp->stack != nullptr) {
    for (uint32_t left = c.group_mask; left != 0; left &= left - 1) {
      auto lane = static_cast<size_t>(std::countr_zero(left));
      limit = std::min<uint64_t>(limit, (*c.warp->stack)[lane]);
    }
  }
  if (offset + callee.local_bytes > limit) {
    return fault(
        c, op, Finding::Kind::kStackOverflow, first,
        fmt::format("calls need more than the {} bytes of a thread's stack", c.local_lane_bytes));
  }
  if (!same_sizes(site.arguments, callee.source->parameters) ||
      !same_sizes(site.results, callee.source->return_values)) {
    return fault(c, op, Finding::Kind::kIllegalInstruction, first,
                 "the function has other parameters than the call");
  }
  c.warp->frames.push_back(
      c.engine->make_frame(*c.warp, callee, c.group_mask, static_cast<uint32_t>(offset)));
  Frame& frame = *c.warp->frames.back();
  frame.caller = &caller;
  if (c.warp->stack != nullptr) frame.stack = std::make_unique<LaneStack>(*c.warp->stack);
  frame.return_to = place_of_op(c, op) + 1;
  frame.call_site = op->target;
  for (size_t i = 0; i < site.arguments.size(); ++i) {
    const CallSite::Copy& copy = site.arguments[i];
    for (uint32_t left = c.group_mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      std::memcpy(local_memory(c, lane, offset + callee.parameter_offsets[i]),
                  local_memory(c, lane, caller.local_offset + copy.caller_offset), copy.bytes);
    }
  }
  c.group->frame = &frame;
  return switch_to(c, 0);
}

const MicroOp* call_op(Context& c, const MicroOp* op) {
  if (!narrow_to_guard(c, op)) return op + 1;
  const CallSite& site = c.code->calls[op->target];
  return enter(c, op, *c.run->launch.program->functions[static_cast<size_t>(site.function)]);
}

const MicroOp* call_register_op(Context& c, const MicroOp* op) {
  if (!narrow_to_guard(c, op)) return op + 1;
  alignas(64) uint64_t room[kLanes];
  const uint64_t* handles = read_lanes<uint64_t>(c, op->a, room);
  int first = std::countr_zero(c.group_mask);
  uint64_t handle = handles[first];
  uint32_t others = 0;
  for (uint32_t left = c.group_mask; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    if (handles[lane] != handle) others |= 1u << lane;
  }
  const Program& program = *c.run->launch.program;
  uint64_t index = (handle - kFunctionHandleBase) / 16;
  if (handle < kFunctionHandleBase || index >= program.by_module_index.size() || handle % 16 != 0 ||
      program.by_module_index[index] <= 0) {
    return fault(c, op, Finding::Kind::kIllegalInstruction, first,
                 fmt::format("call of {:#x}, which is no function", handle));
  }
  if (others != 0) c.engine->split(c, others, place_of_op(c, op));
  return enter(c, op, *program.functions[static_cast<size_t>(program.by_module_index[index])]);
}

const MicroOp* return_op(Context& c, const MicroOp* op) {
  if (!narrow_to_guard(c, op)) return op + 1;
  Frame& frame = *c.frame;
  Frame* caller = frame.caller;
  if (caller == nullptr) {
    return fault(c, op, Finding::Kind::kIllegalInstruction, std::countr_zero(c.group_mask),
                 "return without a call");
  }
  const CallSite& site = caller->code->calls[frame.call_site];
  for (size_t i = 0; i < site.results.size(); ++i) {
    const CallSite::Copy& copy = site.results[i];
    for (uint32_t left = c.group_mask; left != 0; left &= left - 1) {
      int lane = std::countr_zero(left);
      std::memcpy(local_memory(c, lane, caller->local_offset + copy.caller_offset),
                  local_memory(c, lane, frame.local_offset + frame.code->result_offsets[i]),
                  copy.bytes);
    }
  }
  if (c.warp->stack != nullptr) {
    for (uint32_t left = c.group_mask; left != 0; left &= left - 1) {
      auto lane = static_cast<size_t>(std::countr_zero(left));
      (*c.warp->stack)[lane] =
          frame.stack != nullptr ? (*frame.stack)[lane] : static_cast<uint32_t>(c.local_lane_bytes);
    }
  }
  uint32_t return_to = frame.return_to;
  c.group->frame = caller;
  c.group->spin_pc = ~0u;
  c.engine->drop_unused_frames(*c.warp);
  return switch_to(c, return_to);
}

const MicroOp* exit_op(Context& c, const MicroOp* op) {
  uint32_t lanes = guarded_lanes(c, op);
  if (lanes == 0) return op + 1;
  c.group->pc = place_of_op(c, op) + 1;
  c.engine->exit_lanes(c, lanes);
  c.stop = Stop::kSwitch;
  return nullptr;
}

const MicroOp* trap_op(Context& c, const MicroOp* op) {
  uint32_t lanes = guarded_lanes(c, op);
  if (lanes == 0) return op + 1;
  return fault(c, op, Finding::Kind::kTrap, std::countr_zero(lanes), "the kernel executed trap");
}

const MicroOp* nop_op(Context&, const MicroOp* op) { return op + 1; }

/// mov.v4 from a special register of three components; the fourth is 0.
const MicroOp* move_vector_op(Context& c, const MicroOp* op) {
  const Slot sources[] = {op->a, op->b, op->c};
  const Slot* list = c.code->lists.data() + op->list;
  for (int i = 0; i < 4; ++i) {
    if (list[i].index == kNoSlot) continue;
    if (i < 3) {
      copy_slot<uint32_t>(c, list[i], sources[i]);
    } else {
      write_uniform<uint32_t>(c, list[i], 0);
    }
  }
  return op + 1;
}

/// Argument `index` of the call, of one lane; arguments are at most 8 bytes.
uint64_t argument(const Context& c, const CallSite& site, size_t index, int lane) {
  uint64_t value = 0;
  if (index >= site.arguments.size()) return 0;
  const CallSite::Copy& copy = site.arguments[index];
  std::memcpy(&value, local_memory(c, lane, c.frame->local_offset + copy.caller_offset),
              std::min<uint32_t>(copy.bytes, sizeof value));
  return value;
}

const MicroOp* vprintf_op(Context& c, const MicroOp* op) {
  uint32_t lanes = guarded_lanes(c, op);
  const CallSite& site = c.code->calls[op->target];
  std::string& output = c.engine->ranks[static_cast<size_t>(c.run->launch.rank)].output;
  for (uint32_t left = lanes; left != 0; left &= left - 1) {
    int lane = std::countr_zero(left);
    std::string line;
    int32_t count = 0;
    if (print_formatted(c, op, argument(c, site, 0, lane), argument(c, site, 1, lane), lane, line,
                        count) == nullptr) {
      return nullptr;
    }
    if (output.size() + line.size() <= kMaxOutputBytes) output += line;
    if (!site.results.empty()) {
      std::memcpy(local_memory(c, lane, c.frame->local_offset + site.results[0].caller_offset),
                  &count, std::min<uint32_t>(site.results[0].bytes, sizeof count));
    }
  }
  return op + 1;
}

const MicroOp* assertfail_op(Context& c, const MicroOp* op) {
  uint32_t lanes = guarded_lanes(c, op);
  if (lanes == 0) return op + 1;
  int lane = std::countr_zero(lanes);
  const CallSite& site = c.code->calls[op->target];
  auto text = [&](size_t index) {
    return device_string(c, argument(c, site, index, lane)).value_or("?");
  };
  return fault(c, op, Finding::Kind::kAssert, lane,
               fmt::format("{}:{}: {}: assertion `{}` failed", text(1),
                           static_cast<uint32_t>(argument(c, site, 2, lane)), text(3), text(0)));
}

}  // namespace

const ControlOps& control_ops() {
  static const ControlOps ops = {.branch = branch_op,
                                 .branch_index = branch_index_op,
                                 .call = call_op,
                                 .call_register = call_register_op,
                                 .call_vprintf = vprintf_op,
                                 .call_assertfail = assertfail_op,
                                 .return_ = return_op,
                                 .exit = exit_op,
                                 .trap = trap_op,
                                 .nop = nop_op,
                                 .move_vector = move_vector_op};
  return ops;
}

}  // namespace cb::sim
