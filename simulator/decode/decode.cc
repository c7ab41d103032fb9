#include "simulator/decode/decode.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "simulator/decode/emit.h"
#include "simulator/decode/schedule.h"
#include "simulator/decode/select.h"

namespace cb::sim {
namespace {

/// A call graph that needs more is a mistake.
constexpr uint64_t kMaxDepthBytes = uint64_t{512} << 10;

uint64_t frame_bytes(const FunctionCode& code) { return (code.local_bytes + 15) / 16 * 16; }

/// Functions whose address initialises a variable: any call through a register may reach them.
std::set<uint32_t> functions_in_variables(const ptx::Module& module) {
  std::set<uint32_t> found;
  for (const ptx::Variable& variable : module.variables) {
    for (const auto& fixup : variable.fixups) {
      for (uint32_t i = 0; i < module.functions.size(); ++i) {
        if (module.functions[i].name == fixup.symbol) found.insert(i);
      }
    }
  }
  return found;
}

class Decoder {
 public:
  Decoder(std::shared_ptr<const ptx::Module> module, const StallModel& stalls,
          const DecodeOptions& options)
      : module_(*module), stalls_(stalls), options_(options), program_(new Program) {
    program_->module = std::move(module);
    program_->by_module_index.assign(module_.functions.size(), -1);
  }

  Result<std::shared_ptr<const Program>> run(const std::string& name) {
    uint32_t kernel = 0;
    while (kernel < module_.functions.size() && module_.functions[kernel].name != name) ++kernel;
    if (kernel == module_.functions.size() || !module_.functions[kernel].is_entry) {
      return failure(ErrorCode::kConfig, fmt::format("the module has no kernel {}", name));
    }
    std::vector<uint32_t> work = {kernel};
    bool variables_followed = false;
    while (!work.empty()) {
      uint32_t index = work.back();
      work.pop_back();
      if (module_.functions[index].alias_of >= 0) {
        index = static_cast<uint32_t>(module_.functions[index].alias_of);
      }
      if (program_->by_module_index[index] >= 0) continue;
      std::set<uint32_t> reached;
      auto code = decode_function(index, reached);
      if (!code) return tl::unexpected<Error>(code.error());
      program_->by_module_index[index] = static_cast<int32_t>(program_->functions.size());
      program_->functions.push_back(std::move(*code));
      if (calls_unknown_ && !variables_followed) {
        variables_followed = true;
        reached.merge(functions_in_variables(module_));
      }
      for (uint32_t other : reached) {
        if (!module_.functions[other].is_extern && !module_.functions[other].is_entry) {
          work.push_back(other);
        }
      }
    }
    finish(module_.functions[kernel]);
    if (program_->max_depth_bytes > kMaxDepthBytes) {
      return failure(ErrorCode::kConfig, fmt::format("{} needs {} bytes of local memory a thread",
                                                     name, program_->max_depth_bytes));
    }
    return std::shared_ptr<const Program>(std::move(program_));
  }

 private:
  Result<std::unique_ptr<FunctionCode>> decode_function(uint32_t index,
                                                        std::set<uint32_t>& reached) {
    const ptx::Function& function = module_.functions[index];
    note_needs(function);
    auto ir = select_operations(module_, function, shared_, reached, calls_unknown_);
    if (!ir) return tl::unexpected<Error>(ir.error());
    FlowGraph graph = find_blocks(*ir);
    if (options_.schedule_loads) schedule_loads(*ir, graph);
    auto live = find_liveness(*ir, graph);
    if (!live) return tl::unexpected<Error>(live.error());
    auto slots = assign_slots(*ir, graph, *live, options_.share_slots);
    if (!slots) return tl::unexpected<Error>(slots.error());
    auto code = emit_code(*ir, graph, *live, *slots, stalls_, program_->num_sites);
    program_->num_sites += code->num_sites;
    return code;
  }

  /// What a function wants of the launch beyond registers and variables.
  void note_needs(const ptx::Function& function) {
    for (const ptx::Instruction& instruction : function.body) {
      program_->takes_stack |= instruction.opcode == "alloca";
      for (const ptx::Operand& operand : instruction.operands) {
        program_->uses_reserved_shared |= operand.kind == ptx::Operand::Kind::kSpecial &&
                                          operand.name.starts_with("%reserved_smem");
      }
    }
  }

  void finish(const ptx::Function& kernel) {
    for (size_t i = 0; i < module_.functions.size(); ++i) {
      int32_t aliasee = module_.functions[i].alias_of;
      if (aliasee >= 0) {
        program_->by_module_index[i] = program_->by_module_index[static_cast<size_t>(aliasee)];
      }
    }
    // Calls name functions of the module; now that all are there, of the program.
    for (auto& code : program_->functions) {
      for (CallSite& call : code->calls) {
        if (call.function >= 0) {
          call.function = program_->by_module_index[static_cast<size_t>(call.function)];
        }
      }
    }
    program_->static_shared_bytes = static_cast<uint32_t>(shared_.bytes());
    program_->dynamic_shared_align = shared_.dynamic_align();
    program_->param_bytes = parameter_layout(kernel.parameters).second;
    find_depth();
  }

  /// Local memory of the deepest chain of calls, by removing functions that are called by nobody
  /// any more. What is left over calls itself.
  void find_depth() {
    const auto& functions = program_->functions;
    std::vector<uint32_t> callers(functions.size(), 0);
    std::vector<uint64_t> depth(functions.size(), 0);
    for (const auto& code : functions) {
      for (const CallSite& call : code->calls) {
        if (call.function >= 0) ++callers[static_cast<size_t>(call.function)];
      }
    }
    std::vector<size_t> ready;
    for (size_t i = 0; i < functions.size(); ++i) {
      if (callers[i] == 0) ready.push_back(i);
    }
    size_t done = 0;
    uint64_t all = 0;
    for (const auto& code : functions) all += frame_bytes(*code);
    while (!ready.empty()) {
      size_t i = ready.back();
      ready.pop_back();
      ++done;
      uint64_t here = depth[i] + frame_bytes(*functions[i]);
      program_->max_depth_bytes =
          static_cast<uint32_t>(std::max<uint64_t>(program_->max_depth_bytes, here));
      for (const CallSite& call : functions[i]->calls) {
        if (call.function < 0) continue;
        auto callee = static_cast<size_t>(call.function);
        depth[callee] = std::max(depth[callee], here);
        if (--callers[callee] == 0) ready.push_back(callee);
      }
    }
    if (done < functions.size() || calls_unknown_) {
      program_->recursive = true;
      program_->max_depth_bytes =
          static_cast<uint32_t>(std::min<uint64_t>(all, kMaxDepthBytes + 1));
    }
  }

  const ptx::Module& module_;
  const StallModel stalls_;
  const DecodeOptions options_;
  std::unique_ptr<Program> program_;
  SharedLayout shared_;
  bool calls_unknown_ = false;
};

}  // namespace

StallModel StallModel::of(const Profile& profile) {
  return {.alu = profile.alu_cycles,
          .multiply = profile.multiply_cycles,
          .half_rate = profile.half_rate_cycles,
          .doubled = profile.double_cycles,
          .special = profile.special_cycles,
          .convert = profile.convert_cycles,
          .branch = profile.branch_cycles};
}

Result<std::shared_ptr<const Program>> decode(std::shared_ptr<const ptx::Module> module,
                                              const std::string& name, const StallModel& stalls,
                                              const DecodeOptions& options) {
  return Decoder(std::move(module), stalls, options).run(name);
}

}  // namespace cb::sim
