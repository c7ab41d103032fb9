#pragma once

// Decoded kernels: what decode/ makes and exec/ runs. Nothing here depends on a launch, so that one
// decoding serves every rank that loads the same module.

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "simulator/exec/micro_op.h"
#include "simulator/ptx/module.h"

namespace cb::sim {

/// Special registers whose value a warp keeps for its life; clocks and timers are operations.
enum class Special : uint8_t {
  kTidX,
  kTidY,
  kTidZ,
  kNtidX,
  kNtidY,
  kNtidZ,
  kCtaidX,
  kCtaidY,
  kCtaidZ,
  kNctaidX,
  kNctaidY,
  kNctaidZ,
  kLaneid,
  kWarpid,
  kNwarpid,
  kSmid,
  kNsmid,
  kGridid,
  kLanemaskEq,
  kLanemaskLe,
  kLanemaskLt,
  kLanemaskGe,
  kLanemaskGt,
  kTotalSmemSize,
  kDynamicSmemSize,
  kAggrSmemSize,
  kReservedSmemBegin,
  kReservedSmemEnd,
  kReservedSmemCap,
  kReservedSmem1,
  kEnvreg,  ///< Preset::index says which
  kClusterIdX,
  kClusterIdY,
  kClusterIdZ,
  kNclusterIdX,
  kNclusterIdY,
  kNclusterIdZ,
  kClusterCtaidX,
  kClusterCtaidY,
  kClusterCtaidZ,
  kClusterNctaidX,
  kClusterNctaidY,
  kClusterNctaidZ,
  kClusterCtarank,
  kClusterNctarank,
};

/// A slot whose value is set before the first operation of a frame and never changes: constants,
/// special registers and addresses are ordinary sources this way.
struct Preset {
  enum class Kind : uint8_t {
    kConstant,       ///< `value`
    kSpecial,        ///< `special`
    kVariable,       ///< generic address of Module::variables[index] (global, const) + value
    kShared,         ///< offset of a shared variable in the block's shared memory: `value`
    kDynamicShared,  ///< where dynamic shared memory starts: static bytes, aligned, + value
    kLocal,          ///< the frame's offset in the lane's local memory + value
    kParameter,      ///< generic address of the launch's parameters + value
    kFunction,       ///< handle of ptx::Module::functions[index], for indirect calls
  };
  Kind kind = Kind::kConstant;
  Special special = Special::kTidX;
  uint8_t bytes = 8;  ///< width of the slot
  uint16_t slot = 0;
  uint16_t vector = 0;  ///< room for the lanes of a kSpecial, in units of 64 bytes
  uint32_t index = 0;
  uint64_t value = 0;
};

/// What a pointer to ptx::Module::functions[index] holds: recognisable, and the address of nothing.
inline constexpr uint64_t kFunctionHandleBase = 0x7fc0de0000000000;
constexpr uint64_t function_handle(uint32_t index) { return kFunctionHandleBase + index * 16; }

/// One call instruction. Arguments travel through the frames' local memory: the caller's call
/// variables are copied to the callee's parameters, and back.
struct CallSite {
  int32_t function = -1;  ///< index in Program::functions; -1: indirect, or a runtime function
  struct Copy {
    uint32_t caller_offset = 0;  ///< in the caller frame's local memory
    uint32_t bytes = 0;
  };
  std::vector<Copy> arguments;
  std::vector<Copy> results;
};

/// Registers that a possible wait loop carries from one iteration into the next.
struct SpinLoop {
  struct Carried {
    Slot slot;
    uint8_t bytes = 4;
  };
  std::vector<Carried> carried;
  std::vector<uint16_t> carried_predicates;
};

/// What a finding needs to know about an operation.
struct OpInfo {
  uint32_t instruction = 0;  ///< index into ptx::Function::body
};

struct FunctionCode {
  const ptx::Function* source = nullptr;
  std::vector<MicroOp> ops;  ///< the last one is always an exit or return
  std::vector<OpInfo> info;  ///< same length
  std::vector<Slot> lists;
  std::vector<uint32_t> branch_targets;
  std::vector<CallSite> calls;
  std::vector<SpinLoop> spin_loops;
  std::vector<Preset> presets;
  uint32_t num_slots = 0;
  uint32_t vector_lines = 0;    ///< room for vectors, in units of 64 bytes
  uint32_t num_predicates = 0;  ///< kFirstPredicate + those of registers
  uint32_t num_sites = 0;
  /// Per-lane local memory of one frame: .local variables and the .param variables of calls, and
  /// for functions their own parameters and return values.
  uint32_t local_bytes = 0;
  std::vector<uint32_t> parameter_offsets;  ///< in the frame's local memory; functions only
  std::vector<uint32_t> result_offsets;
};

/// A kernel with every function that it can reach.
struct Program {
  std::shared_ptr<const ptx::Module> module;
  std::vector<std::unique_ptr<FunctionCode>> functions;  ///< [0] is the kernel
  /// Position in `functions` of each of the module's functions, -1 for those that are not needed.
  std::vector<int32_t> by_module_index;
  uint32_t num_sites = 0;
  uint32_t static_shared_bytes = 0;  ///< of all shared variables that are reachable
  uint32_t dynamic_shared_align = 16;
  uint32_t param_bytes = 0;
  uint32_t max_depth_bytes = 0;       ///< local memory of the deepest static call chain
  bool recursive = false;             ///< or has indirect calls: the depth is not known
  bool takes_stack = false;           ///< has alloca
  bool uses_reserved_shared = false;  ///< reads %reserved_smem_offset_*
};

}  // namespace cb::sim
