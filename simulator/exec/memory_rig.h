#pragma once

// For tests and benchmarks of memory and warp-wide handlers: one PTX instruction of a kernel,
// decoded as op_spec.h says, with registers, memory of every kind, and an engine that writes down
// what it is asked for.

#include <array>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "simulator/exec/alu_rig.h"
#include "simulator/exec/engine_port.h"
#include "simulator/exec/kernel_run.h"
#include "simulator/exec/op_spec.h"
#include "simulator/memory/address_space.h"

namespace cb::sim {

class MemoryRig {
 public:
  static constexpr int kNumRanks = 4;
  static constexpr uint64_t kSharedBytes = 65536;
  static constexpr uint64_t kLocalLaneBytes = 512;
  static constexpr uint64_t kParamBytes = 256;

  /// The instruction may use the registers of AluRig (more of %r, %f and %fd), the kernel's
  /// parameter `p`, and the variables `shared_array` and `local_array`.
  explicit MemoryRig(const std::string& instruction);
  ~MemoryRig();
  MemoryRig(const MemoryRig&) = delete;
  MemoryRig& operator=(const MemoryRig&) = delete;

  /// What find_memory_op, or else find_warp_op, says of it.
  const std::optional<Result<OpSpec>>& answer() const { return answer_; }
  const OpSpec& spec() const { return **answer_; }
  std::string refusal() const;

  int32_t reg(const std::string& name) const;
  void set(const std::string& name, const LaneValues& values);
  void set_affine(const std::string& name, uint64_t base, int32_t stride);
  LaneValues get(const std::string& name) const;
  const Meta& meta(const std::string& name) const;

  /// Makes the lanes of `mask` active; `full` as in Context.
  void set_mask(uint32_t mask, bool full);
  /// True if the group goes on behind the operation.
  bool run();
  const MicroOp* run_once() { return op_.fn(context_, &op_); }

  Context& context() { return context_; }
  MicroOp& op() { return op_; }
  AddressSpace& memory() { return world_->memory; }
  AccessSite& site() { return sites_[0]; }
  Block& block() { return block_; }

  /// A buffer of a rank that all ranks may touch, filled with random bytes.
  uint64_t allocate(int rank, uint64_t bytes, Allocation::Kind kind = Allocation::Kind::kSymmetric);
  /// Where the block's shared memory, lane 0's local memory, and the parameters are.
  uint64_t shared() const { return context_.shared_base; }
  uint64_t local() const { return context_.local_base; }
  uint64_t params() const { return run_.param_base; }

  // What the engine was asked for.
  struct Fault {
    Finding::Kind kind;
    int lane;
    std::string detail;
    uint64_t address;
    bool write;
  };
  std::optional<Fault> fault;
  std::vector<LaneWrites> posted;
  std::vector<std::pair<uint64_t, uint64_t>> wakes;
  std::vector<Scope> fences;
  std::vector<uint32_t> gathered;  ///< member masks
  bool gather_answer = true;
  struct BarrierCall {
    uint32_t number, threads;
    BarrierKind kind;
    uint32_t predicate_lanes;
  };
  std::vector<BarrierCall> barriers;
  bool barrier_answer = true;
  std::vector<std::pair<Resources::TensorWork, unsigned>> tensor_work;  ///< and its results
  unsigned tensor_commits = 0;
  std::vector<unsigned> tensor_waits;
  std::optional<unsigned> warpgroup_rank = 0;
  struct ClusterCall {
    bool arrives, ordered;
  };
  std::vector<ClusterCall> cluster_calls;
  int dependents_launched = 0;
  uint64_t slept_ns = 0;
  uint64_t cycles = 0x123456789abc;
  uint64_t nanoseconds = 0xfedcba987654;

 private:
  struct alignas(64) Line {
    std::byte bytes[64];
  };
  static constexpr uint16_t kLinesPerRegister = 8;

  /// There is one window of addresses in a process; rigs that exist together share it.
  struct World {
    AddressSpace memory;
    ScratchSpace scratch;
  };
  static std::shared_ptr<World> world();

  void assemble();
  void place(const OpOperand& operand);
  Slot slot_of(int32_t reg) const;
  Slot constant_slot(uint64_t value);
  uint64_t variable_address(const ptx::Operand& operand) const;
  std::byte* lanes_of(int32_t reg) const;
  unsigned bytes_of(int32_t reg) const;

  ptx::Module module_;
  std::optional<Result<OpSpec>> answer_;
  std::vector<Meta> meta_;
  std::unique_ptr<Line[]> vectors_;
  std::vector<uint32_t> predicates_;
  std::shared_ptr<World> world_;
  KernelRun run_;
  Block block_;
  FunctionCode code_;
  std::array<AccessSite, 1> sites_;
  WatchFilter filter_;
  Context context_;
  MicroOp op_;
};

}  // namespace cb::sim
