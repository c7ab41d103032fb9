#include "simulator/exec/memory_rig.h"

#include <fmt/format.h>

#include <random>

#include "base/check.h"
#include "simulator/exec/async_copy.h"

namespace cb::sim {
namespace {

MemoryRig& rig_of(const Context& c) { return *reinterpret_cast<MemoryRig*>(c.engine); }

constexpr uint64_t kDeviceBytes = uint64_t{64} << 20;
constexpr uint64_t kSharedVariable = 64;  ///< offsets of the rig's variables
constexpr uint64_t kLocalVariable = 32;

}  // namespace

// The engine, as far as handlers see it.

const MicroOp* fault(Context& c, const MicroOp*, Finding::Kind kind, int lane,
                     const std::string& detail, uint64_t address, uint32_t, bool write) {
  rig_of(c).fault = MemoryRig::Fault{kind, lane, detail, address, write};
  c.stop = Stop::kFault;
  return nullptr;
}
void post_store(Context& c, const MicroOp*, const LaneWrites& writes) {
  rig_of(c).posted.push_back(writes);
}
void wake_watchers(Context& c, uint64_t lo, uint64_t hi) { rig_of(c).wakes.emplace_back(lo, hi); }
bool gather_lanes(Context& c, const MicroOp*, uint32_t members) {
  rig_of(c).gathered.push_back(members);
  return rig_of(c).gather_answer;
}
bool change_registers(Context&, const MicroOp*, bool, uint32_t) { return true; }
bool sync_lanes(Context& c, const MicroOp* op, uint32_t members) {
  return gather_lanes(c, op, members);
}
bool block_barrier(Context& c, const MicroOp*, uint32_t number, uint32_t threads, BarrierKind kind,
                   uint32_t predicate_lanes) {
  rig_of(c).barriers.push_back({number, threads, kind, predicate_lanes});
  return rig_of(c).barrier_answer;
}
bool arrive_at_cluster(Context& c, const MicroOp*, bool release) {
  rig_of(c).cluster_calls.push_back({.arrives = true, .ordered = release});
  return true;
}
bool wait_for_cluster(Context& c, const MicroOp*, bool acquire) {
  rig_of(c).cluster_calls.push_back({.arrives = false, .ordered = acquire});
  return rig_of(c).barrier_answer;
}
void launch_dependents(Context& c) { ++rig_of(c).dependents_launched; }
bool wait_for_grids(Context& c, const MicroOp*) { return rig_of(c).barrier_answer; }
void fence(Context& c, Scope scope) { rig_of(c).fences.push_back(scope); }
void charge_tensor(Context& c, const MicroOp*, const Resources::TensorWork& work,
                   unsigned num_results) {
  rig_of(c).tensor_work.emplace_back(work, num_results);
}
void commit_tensor_group(Context& c) { ++rig_of(c).tensor_commits; }
void wait_tensor_groups(Context& c, unsigned pending) { rig_of(c).tensor_waits.push_back(pending); }
std::optional<unsigned> rank_in_warpgroup(const Context& c) { return rig_of(c).warpgroup_rank; }
void sleep_ns(Context& c, uint64_t ns) { rig_of(c).slept_ns += ns; }
uint64_t clock_cycles(const Context& c) { return rig_of(c).cycles; }
uint64_t global_timer_ns(const Context& c) { return rig_of(c).nanoseconds; }
bool start_copy(Context&, const MicroOp*, uint32_t, AsyncCopy copy) {
  write_destination(copy);
  return true;
}
void commit_copies(Context&, CopyGroupKind) {}
bool wait_for_copies(Context&, const MicroOp*, CopyGroupKind, uint32_t, bool) { return true; }
Time async_copies_done(const Context&, int) { return 0; }
void charge_barrier(Context&, bool) {}

void SpinRecorder::read(uint64_t address, uint32_t bytes) { reads_.push_back({address, bytes}); }

std::shared_ptr<MemoryRig::World> MemoryRig::world() {
  static std::weak_ptr<World> shared;
  auto world = shared.lock();
  if (world == nullptr) {
    world.reset(new World{{kNumRanks, kNumRanks, kDeviceBytes, MemoryQuota{}}, {}});
    shared = world;
  }
  return world;
}

MemoryRig::MemoryRig(const std::string& instruction) : world_(world()) {
  std::string text = fmt::format(R"(.version 9.0
.target sm_90
.address_size 64
.visible .entry k(.param .align 16 .b8 p[{}])
{{
  .reg .pred %p<10>;
  .reg .b8 %b<10>;
  .reg .b16 %h<20>;
  .reg .b32 %r<160>;
  .reg .f32 %f<160>;
  .reg .b64 %rd<10>;
  .reg .f64 %fd<40>;
  .reg .b128 %q<10>;
  .shared .align 16 .b8 shared_array[256];
  .local .align 16 .b8 local_array[256];
  .param .align 16 .b8 call_variable[64];
  {}
}}
)",
                                 kParamBytes, instruction);
  module_ = value_or_throw(ptx::parse(text));
  const ptx::Function& function = module_.functions.at(0);
  OpContext op_context{&module_, &function};
  answer_ = find_memory_op(function.body.at(0), op_context);
  if (!answer_) answer_ = find_warp_op(function.body.at(0), op_context);
  size_t registers = function.registers.size();
  meta_.resize(registers);
  vectors_ = std::make_unique<Line[]>(registers * kLinesPerRegister);
  predicates_.resize(kFirstPredicate + registers);
  ScratchSpace& scratch = world_->scratch;
  run_.accessor = {0, 0};
  run_.param_base = scratch.allocate(kParamBytes);
  run_.param_bytes = kParamBytes;
  context_.shared_base = scratch.allocate(kSharedBytes);
  context_.shared_bytes = kSharedBytes;
  block_.shared_base = context_.shared_base;
  block_.shared_bytes = kSharedBytes;
  context_.local_base = scratch.allocate(kLanes * kLocalLaneBytes);
  context_.local_lane_bytes = kLocalLaneBytes;
  std::mt19937_64 random(7);
  auto fill = [&](uint64_t base, uint64_t bytes) {
    for (uint64_t i = 0; i < bytes; ++i) {
      reinterpret_cast<uint8_t*>(base)[i] = static_cast<uint8_t>(random());
    }
  };
  fill(run_.param_base, kParamBytes);
  fill(context_.shared_base, kSharedBytes);
  fill(context_.local_base, kLanes * kLocalLaneBytes);
  filter_.num_watches = 1;
  context_.engine = reinterpret_cast<EngineState*>(this);
  context_.memory = &world_->memory;
  context_.run = &run_;
  context_.block = &block_;
  block_.shared_base = context_.shared_base;
  block_.shared_bytes = context_.shared_bytes;
  context_.code = &code_;
  context_.sites = sites_.data();
  context_.watch = &filter_;
  context_.vectors = vectors_[0].bytes;
  context_.predicates = predicates_.data();
  set_mask(kAllLanes, true);
  if (answer_ && *answer_) assemble();
  context_.meta = meta_.data();
}

MemoryRig::~MemoryRig() = default;

std::string MemoryRig::refusal() const {
  if (!answer_) return "not of this family";
  return *answer_ ? "" : answer_->error().message();
}

int32_t MemoryRig::reg(const std::string& name) const {
  const auto& registers = module_.functions[0].registers;
  for (size_t i = 0; i < registers.size(); ++i) {
    if (registers[i].name == name) return static_cast<int32_t>(i);
  }
  CB_CHECK(false, "a register that the instruction does not use");
  return -1;
}

unsigned MemoryRig::bytes_of(int32_t reg) const {
  return ptx::bytes_of(module_.functions[0].registers[static_cast<size_t>(reg)].type);
}

std::byte* MemoryRig::lanes_of(int32_t reg) const {
  return vectors_[static_cast<size_t>(reg) * kLinesPerRegister].bytes;
}

Slot MemoryRig::slot_of(int32_t reg) const {
  auto index = static_cast<uint16_t>(reg);
  if (bytes_of(reg) == 0) return {static_cast<uint16_t>(kFirstPredicate + index), 0};
  return {index, static_cast<uint16_t>(index * kLinesPerRegister)};
}

Slot MemoryRig::constant_slot(uint64_t value) {
  meta_.push_back({value, 0, 0});
  return {static_cast<uint16_t>(meta_.size() - 1), 0};
}

uint64_t MemoryRig::variable_address(const ptx::Operand& operand) const {
  if (operand.name == "p") return run_.param_base;
  if (operand.name == "shared_array") return kSharedVariable;
  return operand.name.empty() ? 0 : kLocalVariable;
}

void MemoryRig::place(const OpOperand& wanted) {
  const AluOperand& plain = wanted.plain;
  const ptx::Operand* operand = &module_.functions[0].body[0].operands[plain.index];
  if (plain.element >= 0) operand = &operand->elements[static_cast<size_t>(plain.element)];
  Slot slot{kNoSlot, 0};
  bool negated = operand->negated;
  if (operand->reg >= 0) {
    slot = slot_of(operand->reg);
  } else if (wanted.kind == OpOperand::Kind::kAddress ||
             wanted.kind == OpOperand::Kind::kListedAddress) {
    slot = constant_slot(variable_address(*operand));
  } else if (operand->kind == ptx::Operand::Kind::kImmediate) {
    uint64_t value = immediate_bits(*operand, plain.type);
    if (plain.type == ptx::Type::kPred) {
      slot = {kFalsePredicate, 0};
      negated ^= value != 0;
    } else {
      slot = constant_slot(value);
    }
  }
  if (wanted.kind == OpOperand::Kind::kAddress) {
    op_.immediate += static_cast<uint64_t>(operand->offset);
  }
  if (wanted.kind == OpOperand::Kind::kList) {
    code_.lists.push_back(slot);
  } else if (wanted.kind == OpOperand::Kind::kListedAddress) {
    code_.lists.push_back(slot);
    code_.lists.push_back(constant_slot(static_cast<uint64_t>(operand->offset)));
  } else {
    place_operand(op_, plain, slot, negated);
  }
}

void MemoryRig::assemble() {
  op_.d = op_.a = op_.b = op_.c = {kNoSlot, 0};
  op_.fn = spec().fn;
  op_.aux = spec().aux;
  op_.immediate = spec().immediate;
  op_.flags = spec().flags;
  for (const OpOperand& operand : spec().operands) place(operand);
  op_.list_size = static_cast<uint16_t>(code_.lists.size());
}

void MemoryRig::set(const std::string& name, const LaneValues& values) {
  int32_t index = reg(name);
  unsigned bytes = bytes_of(index);
  if (bytes == 0) {
    uint32_t& bits = predicates_[slot_of(index).index];
    bits = 0;
    for (size_t i = 0; i < kLanes; ++i) bits |= static_cast<uint32_t>(values.low[i] & 1) << i;
    return;
  }
  meta_[static_cast<size_t>(index)] = {0x5555, 7, 1};
  for (size_t i = 0; i < kLanes; ++i) {
    std::byte* lane = lanes_of(index) + i * bytes;
    std::memcpy(lane, &values.low[i], std::min(bytes, 8u));
    if (bytes == 16) std::memcpy(lane + 8, &values.high[i], 8);
  }
}

void MemoryRig::set_affine(const std::string& name, uint64_t base, int32_t stride) {
  int32_t index = reg(name);
  meta_[static_cast<size_t>(index)] = {base, stride, 0};
  std::memset(lanes_of(index), 0xa5, sizeof(Line) * kLinesPerRegister);
}

LaneValues MemoryRig::get(const std::string& name) const {
  int32_t index = reg(name);
  unsigned bytes = bytes_of(index);
  LaneValues values;
  for (size_t i = 0; i < kLanes; ++i) {
    const Meta& meta = meta_[static_cast<size_t>(index)];
    if (bytes == 0) {
      values.low[i] = predicates_[slot_of(index).index] >> i & 1;
    } else if (meta.is_vector) {
      const std::byte* lane = lanes_of(index) + i * bytes;
      std::memcpy(&values.low[i], lane, std::min(bytes, 8u));
      if (bytes == 16) std::memcpy(&values.high[i], lane + 8, 8);
    } else {
      uint64_t mask = bytes >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * bytes)) - 1;
      values.low[i] = (meta.base + static_cast<uint64_t>(int64_t{meta.stride}) * i) & mask;
    }
  }
  return values;
}

const Meta& MemoryRig::meta(const std::string& name) const {
  return meta_[static_cast<size_t>(reg(name))];
}

void MemoryRig::set_mask(uint32_t mask, bool full) {
  context_.mask = mask;
  context_.group_mask = mask;
  context_.full = full;
}

bool MemoryRig::run() {
  fault.reset();
  context_.meta = meta_.data();
  return op_.fn(context_, &op_) == &op_ + 1;
}

uint64_t MemoryRig::allocate(int rank, uint64_t bytes, Allocation::Kind kind) {
  const Allocation* allocation = world_->memory.allocate(
      {.rank = rank, .device = rank, .bytes = bytes, .kind = kind, .label = "", .zeroed = true});
  CB_CHECK(allocation != nullptr, "test buffers fit");
  if (kind == Allocation::Kind::kSymmetric) world_->memory.grant_everyone(allocation->base);
  std::mt19937_64 random(allocation->base);
  for (uint64_t i = 0; i < bytes; ++i) {
    reinterpret_cast<uint8_t*>(allocation->base)[i] = static_cast<uint8_t>(random());
  }
  return allocation->base;
}

}  // namespace cb::sim
