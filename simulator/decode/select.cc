#include "simulator/decode/select.h"

#include <fmt/format.h>

#include <algorithm>

#include "simulator/decode/refusals.h"
#include "simulator/decode/special.h"

namespace cb::sim {
namespace {

using ptx::Operand;
using Symbol = ptx::Operand::Symbol;

constexpr uint64_t kMaxLocalBytes = 512 * 1024;

class Selector {
 public:
  Selector(const ptx::Module& module, const ptx::Function& function, SharedLayout& shared,
           std::set<uint32_t>& reached, bool& calls_unknown)
      : module_(module),
        function_(function),
        shared_(shared),
        reached_(reached),
        calls_unknown_(calls_unknown) {
    ir_.function = &function;
  }

  Result<FunctionIr> run() {
    try {
      lay_out_local_memory();
      if (function_.is_entry) kernel_parameters_ = parameter_layout(function_.parameters).first;
      for (uint32_t i = 0; i < function_.body.size(); ++i) {
        instruction_ = &function_.body[i];
        if (auto why = out_of_scope(*instruction_)) throw refusal(*why);
        IrOp op = select();
        op.instruction = i;
        set_guard(op);
        ir_.ops.push_back(std::move(op));
      }
      ir_.ops.push_back(end_of_function());
      return std::move(ir_);
    } catch (const Error& error) {
      return tl::unexpected<Error>(error);
    }
  }

 private:
  Error refusal(const std::string& why) const {
    return Error(ErrorCode::kConfig, fmt::format("ptx:{}: {}: {}", instruction_->text_line,
                                                 instruction_->full_name(), why));
  }

  void lay_out_local_memory() {
    uint64_t next = 0;
    auto place = [&next](const ptx::Variable& variable) {
      next = round_up(next, align_of(variable));
      uint64_t offset = next;
      next += variable.bytes;
      return static_cast<uint32_t>(offset);
    };
    if (!function_.is_entry) {
      for (const auto& parameter : function_.parameters) {
        ir_.parameter_offsets.push_back(place(parameter));
      }
      for (const auto& result : function_.return_values) {
        ir_.result_offsets.push_back(place(result));
      }
    }
    for (const auto& variable : function_.variables) {
      bool is_local = variable.space == ptx::Space::kLocal || variable.space == ptx::Space::kParam;
      ir_.variable_offsets.push_back(is_local ? place(variable) : 0);
      if (next > kMaxLocalBytes) break;
    }
    next = round_up(next, 16);
    if (next > kMaxLocalBytes) {
      throw Error(ErrorCode::kConfig,
                  fmt::format("{}: {} bytes of local memory; at most {} are supported",
                              function_.name, next, kMaxLocalBytes));
    }
    ir_.local_bytes = static_cast<uint32_t>(next);
  }

  void set_guard(IrOp& op) const {
    op.guard = instruction_->guard;
    op.guard_negated = instruction_->guard_negated;
    if (op.guard >= 0) op.falls_through = true;
    if (op.guard_negated) op.flags |= kOpGuardNegated;
  }

  IrOp end_of_function() const {
    IrOp op;
    op.fn = function_.is_entry ? control_ops().exit : control_ops().return_;
    op.flags = kOpControl | kOpSideEffect;
    op.ends_block = true;
    op.falls_through = false;
    op.instruction = function_.body.empty() ? 0 : static_cast<uint32_t>(function_.body.size() - 1);
    return op;
  }

  IrOp select() {
    const std::string& opcode = instruction_->opcode;
    if (opcode == "bra") return select_branch();
    if (opcode == "brx") return select_branch_table();
    if (opcode == "call") return select_call();
    if (opcode == "ret" || opcode == "exit") {
      IrOp op = end_of_function();
      if (opcode == "exit") op.fn = control_ops().exit;
      return op;
    }
    if (opcode == "trap") {
      IrOp op = end_of_function();
      op.fn = control_ops().trap;
      return op;
    }
    if (opcode == "brkpt" || opcode == "pmevent") return select_hint();
    if (auto moved = select_move()) return *std::move(moved);
    if (auto spec = find_alu(*instruction_, function_)) {
      return from_alu(value_or_throw(std::move(*spec)));
    }
    OpContext context{.module = &module_, .function = &function_};
    if (auto spec = find_memory_op(*instruction_, context)) {
      return from_spec(value_or_throw(std::move(*spec)));
    }
    if (auto spec = find_warp_op(*instruction_, context)) {
      return from_spec(value_or_throw(std::move(*spec)));
    }
    throw refusal("the simulator does not have this instruction");
  }

  /// For debuggers and profilers, of which there are none.
  IrOp select_hint() const {
    const auto& operands = instruction_->operands;
    bool is_event = instruction_->opcode == "pmevent";
    bool known = instruction_->modifiers.empty() ||
                 (is_event && instruction_->modifiers == std::vector<std::string>{"mask"});
    if (!known) throw refusal("this form is not supported");
    if (operands.size() != (is_event ? 1 : 0)) throw refusal("an operand is missing or too many");
    if (is_event && operands[0].kind != Operand::Kind::kImmediate) {
      throw refusal("an event is a constant");
    }
    IrOp op;
    op.fn = control_ops().nop;
    op.flags = kOpPure;
    return op;
  }

  /// mov.v4 from %tid and its like.
  IrOp select_vector_move() {
    const Operand& to = instruction_->operands[0];
    if (instruction_->full_name() != "mov.v4.u32" || to.elements.size() != 4) {
      throw refusal("this form is not supported");
    }
    IrOp op;
    op.fn = control_ops().move_vector;
    op.flags = kOpPure;
    for (size_t i = 0; i < 4; ++i) {
      const Operand& element = to.elements[i];
      bool is_sink = element.kind == Operand::Kind::kSink;
      if (!is_sink &&
          (element.kind != Operand::Kind::kRegister ||
           ptx::bytes_of(function_.registers[static_cast<size_t>(element.reg)].type) != 4)) {
        throw refusal("the destinations must be registers of 32 bits");
      }
      AluOperand place{.index = 0,
                       .element = static_cast<int8_t>(i),
                       .type = ptx::Type::kU32,
                       .is_destination = true};
      op.operands.push_back(
          {{.kind = OpOperand::Kind::kList, .plain = place}, resolve(element, ptx::Type::kU32)});
    }
    constexpr std::pair<const char*, AluPlace> kComponents[] = {
        {".x", AluPlace::kA}, {".y", AluPlace::kB}, {".z", AluPlace::kC}};
    for (const auto& [component, place] : kComponents) {
      Operand scalar = instruction_->operands[1];
      scalar.name += component;
      op.operands.push_back({{.plain = {.index = 1, .place = place, .type = ptx::Type::kU32}},
                             resolve(scalar, ptx::Type::kU32)});
    }
    return op;
  }

  /// A 16-bit register gets the lower half of a special register.
  IrOp select_narrow_move() {
    ptx::Instruction convert = *instruction_;
    convert.opcode = "cvt";
    convert.modifiers = {"u16", "u32"};
    convert.operands[1] = Operand{};  // a constant: of any width
    return from_alu(value_or_throw(std::move(*find_alu(convert, function_))));
  }

  /// mov from an address or a special register that does not change: an ordinary mov whose source
  /// is a preset.
  std::optional<IrOp> select_move() {
    if (instruction_->opcode != "mov" || instruction_->operands.size() != 2) return std::nullopt;
    const Operand& source = instruction_->operands[1];
    bool is_special =
        source.kind == Operand::Kind::kSpecial && special_preset(source.name).has_value();
    if (source.kind == Operand::Kind::kSpecial && instruction_->has("v4")) {
      return select_vector_move();
    }
    if (is_special && (instruction_->has("u16") || instruction_->has("b16")) &&
        instruction_->operands[0].kind == Operand::Kind::kRegister) {
      return select_narrow_move();
    }
    if (!is_special && source.kind != Operand::Kind::kVariable) return std::nullopt;
    if (instruction_->operands[0].kind != Operand::Kind::kRegister) {
      throw refusal("the destination must be a register");
    }
    ptx::Instruction plain = *instruction_;
    plain.operands[1] = plain.operands[0];
    auto spec = find_alu(plain, function_);
    if (!spec) throw refusal("this form is not supported");
    return from_alu(value_or_throw(std::move(*spec)));
  }

  IrOp from_alu(const AluSpec& spec) {
    IrOp op;
    op.fn = spec.fn;
    op.aux = spec.aux;
    op.immediate = spec.immediate;
    op.flags = kOpPure;
    op.latency_class = spec.latency_class;
    op.reads_carry = spec.reads_carry;
    op.writes_carry = spec.writes_carry;
    for (const AluOperand& operand : spec.operands()) {
      op.operands.push_back({{.kind = OpOperand::Kind::kPlain, .plain = operand},
                             resolve(operand_at(operand), operand.type)});
    }
    return op;
  }

  IrOp from_spec(const OpSpec& spec) {
    IrOp op;
    op.fn = spec.fn;
    op.aux = spec.aux;
    op.immediate = spec.immediate;
    op.flags = spec.flags;
    op.latency_class = spec.latency_class;
    op.reads_carry = spec.reads_carry;
    op.writes_carry = spec.writes_carry;
    op.has_site = spec.has_site;
    op.is_free_load = (spec.flags & kOpLoad) != 0 && (spec.flags & kOpOrdered) == 0 &&
                      (instruction_->has("param") || instruction_->has("const") ||
                       instruction_->has("nc") || instruction_->has("param::entry"));
    for (const OpOperand& operand : spec.operands) {
      const Operand& source = operand_at(operand.plain);
      Ref ref;
      if (operand.kind == OpOperand::Kind::kListedAddress) {
        OpOperand listed{.kind = OpOperand::Kind::kList, .plain = operand.plain};
        op.operands.push_back({listed, resolve_address(source, operand.plain.type)});
        auto offset = static_cast<uint64_t>(source.offset);
        op.operands.push_back({listed, preset({.value = offset}, ptx::Type::kB64)});
        continue;
      }
      if (operand.kind == OpOperand::Kind::kAddress) {
        ref = resolve_address(source, operand.plain.type);
        op.immediate += static_cast<uint64_t>(source.offset);
      } else {
        ref = resolve(source, operand.plain.type);
      }
      op.operands.push_back({operand, ref});
    }
    return op;
  }

  const Operand& operand_at(const AluOperand& place) const {
    if (place.index >= instruction_->operands.size()) throw refusal("an operand is missing");
    const Operand& operand = instruction_->operands[place.index];
    if (place.element < 0) return operand;
    const Operand* element = element_of(operand, place.element);
    if (element == nullptr) throw refusal("an operand is missing");
    return *element;
  }

  Ref resolve(const Operand& operand, ptx::Type type) {
    switch (operand.kind) {
      case Operand::Kind::kRegister:
        return {Ref::Kind::kRegister, operand.negated, static_cast<uint32_t>(operand.reg)};
      case Operand::Kind::kImmediate: {
        uint64_t bits = immediate_bits(operand, type);
        if (type == ptx::Type::kPred) {
          return {.kind = Ref::Kind::kFalse, .negated = operand.negated != (bits != 0)};
        }
        return preset({.value = bits}, type);
      }
      case Operand::Kind::kSpecial:
        if (auto special = special_preset(operand.name)) return preset(*special, type);
        throw refusal(fmt::format("the special register {} is not supported", operand.name));
      case Operand::Kind::kVariable:
        return variable_address(operand, type, operand.offset);
      case Operand::Kind::kSink:
        return {};
      default:
        throw refusal("an operand of this form is not supported");
    }
  }

  Ref resolve_address(const Operand& operand, ptx::Type type) {
    if (operand.kind == Operand::Kind::kVariable) return variable_address(operand, type, 0);
    if (operand.kind != Operand::Kind::kMemory) throw refusal("a memory operand is missing");
    if (operand.reg >= 0) {
      return {Ref::Kind::kRegister, false, static_cast<uint32_t>(operand.reg)};
    }
    if (operand.symbol == Symbol::kNone) return preset({.value = 0}, type);
    return variable_address(operand, type, 0);
  }

  Ref variable_address(const Operand& operand, ptx::Type type, int64_t offset) {
    auto index = static_cast<uint32_t>(operand.symbol_index);
    auto value = static_cast<uint64_t>(offset);
    switch (operand.symbol) {
      case Symbol::kModuleVariable: {
        const ptx::Variable& variable = module_.variables[index];
        if (variable.space == ptx::Space::kShared)
          return shared(nullptr, index, variable, type, value);
        if (variable.is_extern) {
          throw refusal(fmt::format("the variable {} is not defined", variable.name));
        }
        return preset({.kind = Preset::Kind::kVariable, .index = index, .value = value}, type);
      }
      case Symbol::kFunctionVariable: {
        const ptx::Variable& variable = function_.variables[index];
        if (variable.space == ptx::Space::kShared) {
          return shared(&function_, index, variable, type, value);
        }
        if (variable.space != ptx::Space::kLocal && variable.space != ptx::Space::kParam) {
          throw refusal(fmt::format("the variable {} has no memory", variable.name));
        }
        return local(ir_.variable_offsets[index] + value, type);
      }
      case Symbol::kParameter:
        if (!function_.is_entry) return local(ir_.parameter_offsets[index] + value, type);
        return preset(
            {.kind = Preset::Kind::kParameter, .value = kernel_parameters_[index] + value}, type);
      case Symbol::kReturnValue:
        return local(ir_.result_offsets[index] + value, type);
      case Symbol::kFunction:
        reached_.insert(index);
        return preset({.kind = Preset::Kind::kFunction, .index = index}, type);
      default:
        throw refusal(fmt::format("{} has no address", operand.name));
    }
  }

  Ref shared(const ptx::Function* owner, uint32_t index, const ptx::Variable& variable,
             ptx::Type type, uint64_t value) {
    if (variable.is_extern || variable.bytes == 0) {
      shared_.need_dynamic(align_of(variable));
      return preset({.kind = Preset::Kind::kDynamicShared, .value = value}, type);
    }
    return preset(
        {.kind = Preset::Kind::kShared, .value = shared_.offset_of(owner, index, variable) + value},
        type);
  }

  Ref local(uint64_t offset, ptx::Type type) {
    return preset({.kind = Preset::Kind::kLocal, .value = offset}, type);
  }

  Ref preset(Preset preset, ptx::Type type) {
    unsigned bytes = ptx::bytes_of(type);
    if (bytes == 0 || bytes > 8) throw refusal("a constant of this width is not supported");
    if (preset.kind == Preset::Kind::kSpecial && bytes < 4) {
      throw refusal("a special register needs a register of at least 32 bits");
    }
    preset.bytes = static_cast<uint8_t>(bytes);
    auto key = std::tuple(preset.kind, preset.special, preset.bytes, preset.index, preset.value);
    auto [place, is_new] = preset_indices_.try_emplace(key, ir_.presets.size());
    if (is_new) ir_.presets.push_back(preset);
    return {.kind = Ref::Kind::kPreset, .index = static_cast<uint32_t>(place->second)};
  }

  IrOp select_branch() {
    const auto& operands = instruction_->operands;
    if (operands.size() != 1 || operands[0].kind != Operand::Kind::kLabel) {
      throw refusal("a branch needs a label");
    }
    IrOp op;
    op.fn = control_ops().branch;
    op.flags = kOpControl;
    op.is_branch = op.ends_block = true;
    op.falls_through = false;
    op.branch_target = static_cast<int32_t>(operands[0].bits);
    return op;
  }

  IrOp select_branch_table() {
    const auto& operands = instruction_->operands;
    if (operands.size() != 2 || operands[0].kind != Operand::Kind::kRegister ||
        operands[1].kind != Operand::Kind::kBranchTable) {
      throw refusal("a register and a list of targets are needed");
    }
    IrOp op;
    op.fn = control_ops().branch_index;
    op.flags = kOpControl;
    op.is_branch = op.ends_block = true;
    op.falls_through = false;
    op.branch_table = static_cast<int32_t>(operands[1].bits);
    AluOperand place{.index = 0, .place = AluPlace::kA, .type = ptx::Type::kU32};
    op.operands.push_back({{.plain = place}, resolve(operands[0], ptx::Type::kU32)});
    return op;
  }

  std::vector<CallSite::Copy> call_copies(const Operand& list) const {
    std::vector<CallSite::Copy> copies;
    for (const Operand& element : list.elements) {
      if (element.kind != Operand::Kind::kVariable) {
        throw refusal("only variables can be passed to a function");
      }
      auto index = static_cast<uint32_t>(element.symbol_index);
      if (element.symbol == Symbol::kFunctionVariable &&
          function_.variables[index].space == ptx::Space::kParam) {
        copies.push_back(
            {ir_.variable_offsets[index], static_cast<uint32_t>(function_.variables[index].bytes)});
      } else if (element.symbol == Symbol::kParameter && !function_.is_entry) {
        copies.push_back({ir_.parameter_offsets[index],
                          static_cast<uint32_t>(function_.parameters[index].bytes)});
      } else {
        throw refusal(fmt::format("{} cannot be passed to a function", element.name));
      }
    }
    return copies;
  }

  IrOp select_call() {
    const auto& operands = instruction_->operands;
    if (operands.size() < 3) throw refusal("a call needs a function");
    CallSite site;
    site.results = call_copies(operands[0]);
    site.arguments = call_copies(operands[2]);
    IrOp op;
    op.flags = kOpControl | kOpSideEffect;
    op.ends_block = true;
    const Operand& callee = operands[1];
    if (callee.kind == Operand::Kind::kRegister) {
      op.fn = control_ops().call_register;
      calls_unknown_ = true;
      AluOperand place{.index = 1, .place = AluPlace::kA, .type = ptx::Type::kU64};
      op.operands.push_back({{.plain = place}, resolve(callee, ptx::Type::kU64)});
    } else {
      int32_t index = callee.symbol_index;
      int32_t aliasee = module_.functions[static_cast<size_t>(index)].alias_of;
      if (aliasee >= 0) index = aliasee;
      const ptx::Function& target = module_.functions[static_cast<size_t>(index)];
      if (target.is_entry) throw refusal("kernels cannot be called");
      if (!target.is_extern) {
        op.fn = control_ops().call;
        site.function = index;
        check_sizes(site, target);
        reached_.insert(static_cast<uint32_t>(index));
      } else if (target.name == "vprintf") {
        op.fn = control_ops().call_vprintf;
      } else if (target.name == "__assertfail") {
        op.fn = control_ops().call_assertfail;
      } else {
        throw refusal(fmt::format("the function {} is not defined", target.name));
      }
    }
    op.call = static_cast<int32_t>(ir_.calls.size());
    ir_.calls.push_back(std::move(site));
    return op;
  }

  void check_sizes(const CallSite& site, const ptx::Function& target) const {
    auto same = [](const std::vector<CallSite::Copy>& copies,
                   const std::vector<ptx::Variable>& variables) {
      return std::equal(copies.begin(), copies.end(), variables.begin(), variables.end(),
                        [](const CallSite::Copy& copy, const ptx::Variable& variable) {
                          return copy.bytes == variable.bytes;
                        });
    };
    if (!same(site.arguments, target.parameters) || !same(site.results, target.return_values)) {
      throw refusal(fmt::format("{} has other parameters than the call", target.name));
    }
  }

  const ptx::Module& module_;
  const ptx::Function& function_;
  SharedLayout& shared_;
  std::set<uint32_t>& reached_;
  bool& calls_unknown_;
  const ptx::Instruction* instruction_ = nullptr;
  FunctionIr ir_;
  std::vector<uint32_t> kernel_parameters_;
  std::map<std::tuple<Preset::Kind, Special, uint8_t, uint32_t, uint64_t>, size_t> preset_indices_;
};

}  // namespace

Result<FunctionIr> select_operations(const ptx::Module& module, const ptx::Function& function,
                                     SharedLayout& shared, std::set<uint32_t>& reached,
                                     bool& calls_unknown) {
  return Selector(module, function, shared, reached, calls_unknown).run();
}

}  // namespace cb::sim
