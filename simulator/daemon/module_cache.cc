#include "simulator/daemon/module_cache.h"

#include <cxxabi.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <set>

#include "base/hash.h"
#include "base/text.h"
#include "simulator/daemon/cuda_error.h"
#include "simulator/ptx/fatbin.h"
#include "simulator/ptx/link.h"

namespace cb::sim {
namespace {

/// Registers per thread where no machine code says how many: what ptxas gives small kernels.
constexpr uint32_t kUnknownRegisters = 32;
/// Modules stay for the life of the daemon.
constexpr size_t kMaxEntries = 1024;
constexpr size_t kMaxNamesBytes = size_t{1} << 20;

uint64_t round_up(uint64_t value, uint64_t to) { return (value + to - 1) / to * to; }

uint32_t product(const uint32_t (&dims)[3]) { return dims[0] * dims[1] * dims[2]; }

/// Where the parameters lie, as PTX ISA says: in order, each at its alignment.
uint32_t lay_out(const ptx::Function& kernel, std::vector<ParamInfo>& params) {
  uint64_t at = 0;
  for (const ptx::Variable& parameter : kernel.parameters) {
    at = round_up(at, std::max<uint32_t>(parameter.align, 1));
    params.push_back({static_cast<uint32_t>(at), static_cast<uint32_t>(parameter.bytes)});
    at += parameter.bytes;
  }
  return static_cast<uint32_t>(at);
}

uint64_t shared_bytes_of(const ptx::Module& module, const ptx::Function& kernel) {
  uint64_t bytes = 0;
  auto add = [&bytes](const ptx::Variable& variable) {
    if (variable.space != ptx::Space::kShared || variable.is_extern) return;
    bytes = round_up(bytes, std::max<uint32_t>(variable.align, 1)) + variable.bytes;
  };
  for (const ptx::Variable& variable : module.variables) add(variable);
  for (const ptx::Variable& variable : kernel.variables) add(variable);
  return bytes;
}

/// Bytes of the __constant__ variables that the kernel itself names.
uint64_t constant_bytes_of(const ptx::Module& module, const ptx::Function& kernel) {
  std::set<int32_t> used;
  for (const ptx::Instruction& instruction : kernel.body) {
    for (const ptx::Operand& operand : instruction.operands) {
      if (operand.symbol == ptx::Operand::Symbol::kModuleVariable)
        used.insert(operand.symbol_index);
    }
  }
  uint64_t bytes = 0;
  for (int32_t index : used) {
    if (index < 0 || static_cast<size_t>(index) >= module.variables.size()) continue;
    const ptx::Variable& variable = module.variables[static_cast<size_t>(index)];
    if (variable.space == ptx::Space::kConst) bytes += variable.bytes;
  }
  return bytes;
}

/// Builds the ModuleTable with all that follows it.
class TableBuilder {
 public:
  TableBuilder(SharedModule& shared, unsigned ptx_arch, unsigned arch, uint32_t max_registers)
      : shared_(shared), ptx_arch_(ptx_arch), arch_(arch), max_registers_(max_registers) {}

  void add_kernel(const ptx::Function& kernel, const ptx::KernelResources* resources) {
    KernelInfo info;
    info.name_offset = add_name(kernel.name);
    info.first_param = static_cast<uint32_t>(params_.size());
    info.param_bytes = lay_out(kernel, params_);
    info.num_params = static_cast<uint32_t>(params_.size()) - info.first_param;
    uint32_t required = product(kernel.required_threads);
    info.max_threads = required > 0 ? required : product(kernel.max_threads);
    if (resources != nullptr) {
      info.registers = resources->registers;
      info.static_shared_bytes = static_cast<uint32_t>(resources->static_shared_bytes);
      info.local_bytes = static_cast<uint32_t>(resources->frame_bytes);
    } else {
      info.registers = kernel.max_registers > 0 ? std::min(kernel.max_registers, kUnknownRegisters)
                                                : kUnknownRegisters;
      info.static_shared_bytes = static_cast<uint32_t>(shared_bytes_of(*shared_.module, kernel));
      for (const ptx::Variable& variable : kernel.variables) {
        if (variable.space == ptx::Space::kLocal) {
          info.local_bytes += static_cast<uint32_t>(variable.bytes);
        }
      }
    }
    if (max_registers_ > 0) info.registers = std::min(info.registers, max_registers_);
    info.ptx_version = ptx_arch_;
    info.binary_version = arch_;
    std::copy(std::begin(kernel.required_cluster), std::end(kernel.required_cluster),
              std::begin(info.required_cluster));
    info.max_cluster_blocks = kernel.max_cluster_blocks;
    info.explicit_cluster = kernel.explicit_cluster ? 1 : 0;
    info.constant_bytes = static_cast<uint32_t>(constant_bytes_of(*shared_.module, kernel));
    shared_.kernels.push_back(info);
    shared_.kernel_names.push_back(kernel.name);
  }

  void add_variable(const ptx::Variable& variable, uint32_t index) {
    variables_.push_back({.name_offset = add_name(variable.name),
                          .is_constant = variable.space == ptx::Space::kConst,
                          .bytes = variable.bytes});
    shared_.variables.push_back(index);
  }

  /// False when it does not fit in staging memory.
  bool finish() {
    ModuleTable header;
    header.num_kernels = static_cast<uint32_t>(shared_.kernels.size());
    header.num_variables = static_cast<uint32_t>(variables_.size());
    header.num_params = static_cast<uint32_t>(params_.size());
    header.names_bytes = static_cast<uint32_t>(names_.size());
    append(&header, sizeof header);
    append(shared_.kernels.data(), shared_.kernels.size() * sizeof(KernelInfo));
    append(variables_.data(), variables_.size() * sizeof(VariableInfo));
    append(params_.data(), params_.size() * sizeof(ParamInfo));
    append(names_.data(), names_.size());
    return names_.size() <= kMaxNamesBytes && shared_.table.size() <= kStagingBytes;
  }

 private:
  uint32_t add_name(const std::string& name) {
    auto offset = static_cast<uint32_t>(names_.size());
    names_.append(name.c_str(), name.size() + 1);
    return offset;
  }
  void append(const void* data, size_t bytes) {
    auto* from = static_cast<const std::byte*>(data);
    shared_.table.insert(shared_.table.end(), from, from + bytes);
  }

  SharedModule& shared_;
  unsigned ptx_arch_, arch_;
  uint32_t max_registers_;
  std::vector<VariableInfo> variables_;
  std::vector<ParamInfo> params_;
  std::string names_;
};

/// Parameters must fit in one message behind a Launch.
const char* fault_of(const ptx::Module& module) {
  for (const ptx::Function& function : module.functions) {
    uint64_t bytes = 0;
    for (const ptx::Variable& parameter : function.parameters) {
      bytes += parameter.bytes + std::max<uint32_t>(parameter.align, 1);
    }
    if (function.is_entry && bytes > kMaxPayloadBytes - sizeof(Launch)) {
      return "the parameters of a kernel are too long";
    }
    uint64_t threads = 1;
    for (uint32_t dim : function.max_threads)
      threads *= std::max<uint64_t>(std::min(dim, 65536u), 1);
    if (function.is_entry && threads > UINT32_MAX) return "a kernel's bounds are too large";
  }
  return nullptr;
}

std::string hash_of(std::span<const std::byte> bytes) {
  return sha256_hex(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
}

/// The fatbins of a LinkedImage; nothing when it is another kind of image.
std::optional<std::vector<std::span<const std::byte>>> fatbins_of(
    std::span<const std::byte> image) {
  LinkedImage header;
  if (image.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, image.data(), sizeof header);
  if (header.magic != kLinkedImageMagic) return std::nullopt;
  std::vector<std::span<const std::byte>> fatbins;
  size_t at = sizeof header + size_t{header.count} * sizeof(uint64_t);
  if (header.count > kMaxLinkedFatbins || at > image.size()) return fatbins;
  for (uint32_t index = 0; index < header.count; ++index) {
    uint64_t bytes = 0;
    std::memcpy(&bytes, image.data() + sizeof header + index * sizeof bytes, sizeof bytes);
    if (bytes > image.size() - at) return std::vector<std::span<const std::byte>>();
    fatbins.push_back(image.subspan(at, bytes));
    at += bytes;
  }
  return fatbins;
}

bool has_link_flag(std::span<const std::byte> image, uint32_t flag) {
  LinkedImage header;
  std::memcpy(&header, image.data(), sizeof header);
  return (header.flags & flag) != 0;
}

}  // namespace

std::string demangle(const std::string& name) {
  int status = 0;
  char* text = abi::__cxa_demangle(name.c_str(), nullptr, nullptr, &status);
  std::string readable = status == 0 && text != nullptr ? text : name;
  std::free(text);
  return printable(readable, 512);
}

Result<std::shared_ptr<const Program>> SharedModule::program(uint32_t kernel,
                                                             const StallModel& stalls) {
  auto found = programs_.find(kernel);
  if (found == programs_.end()) {
    found = programs_.emplace(kernel, decode(module, kernel_names[kernel], stalls)).first;
  }
  return found->second;
}

ModuleCache::ModuleCache(const Profile& profile, std::optional<std::vector<std::string>> allowed)
    : arch_(profile.device.compute_major * 10 + profile.device.compute_minor),
      stalls_(StallModel::of(profile)),
      allowed_(std::move(allowed)) {}

bool ModuleCache::is_allowed(const std::string& hash) const {
  return !allowed_ || std::find(allowed_->begin(), allowed_->end(), hash) != allowed_->end();
}

bool ModuleCache::all_allowed(std::span<const std::byte> image) const {
  if (!allowed_) return true;
  auto fatbins = fatbins_of(image);
  if (!fatbins) return is_allowed(hash_of(image));
  // A LinkedImage of nothing is refused when it is read.
  return std::all_of(fatbins->begin(), fatbins->end(),
                     [this](const auto& fatbin) { return is_allowed(hash_of(fatbin)); });
}

std::shared_ptr<SharedModule> ModuleCache::load(std::span<const std::byte> image,
                                                uint32_t max_registers, ImageFault& fault) {
  if (!all_allowed(image)) {
    fault = {kCudaNotPermitted,
             "device code that was not built from the candidate's sources is not loaded"};
    return nullptr;
  }
  std::string key = fmt::format("{} {}", hash_of(image), max_registers);
  auto found = entries_.find(key);
  if (found == entries_.end() && entries_.size() >= kMaxEntries) {
    fault = {kCudaMemoryAllocation, "the job has loaded too many different modules"};
    return nullptr;
  }
  if (found == entries_.end()) found = entries_.emplace(key, read(image, max_registers)).first;
  fault = found->second.fault;
  return found->second.module;
}

std::optional<ModuleCache::Source> ModuleCache::read_source(std::span<const std::byte> bytes,
                                                            ImageFault& fault) const {
  auto refuse = [&fault](int error, const std::string& message) {
    fault = {error, message};
    return std::nullopt;
  };
  Result<ptx::Fatbin> fatbin = ptx::read_fatbin(bytes);
  if (!fatbin) return refuse(kCudaInvalidKernelImage, fatbin.error().message());
  Result<const ptx::FatbinEntry*> entry = ptx::select_ptx(*fatbin, arch_);
  if (!entry) return refuse(kCudaNoKernelImageForDevice, entry.error().message());
  Result<ptx::Module> parsed = ptx::parse((*entry)->content);
  if (!parsed) {
    bool is_newer = std::pair((*entry)->version_major, (*entry)->version_minor) >
                    std::pair(ptx::kNewestVersion[0], ptx::kNewestVersion[1]);
    return refuse(is_newer ? kCudaUnsupportedPtxVersion : kCudaInvalidPtx,
                  parsed.error().message());
  }
  Source source;
  source.module = std::move(*parsed);
  source.ptx_arch = (*entry)->arch;
  if (auto cubin = ptx::select_cubin(*fatbin, arch_)) {
    const std::string& code = (*cubin)->content;
    if (auto found = ptx::read_cubin_resources(std::as_bytes(std::span(code)))) {
      source.resources = std::move(*found);
    }
  }
  return source;
}

std::optional<ModuleCache::Source> ModuleCache::read_linked(std::span<const std::byte> image,
                                                            ImageFault& fault) const {
  Source linked;
  std::vector<ptx::Module> modules;
  auto fatbins = fatbins_of(image);
  for (std::span<const std::byte> fatbin : *fatbins) {
    std::optional<Source> source = read_source(fatbin, fault);
    if (!source && fault.error == kCudaNoKernelImageForDevice &&
        has_link_flag(image, kLinkSkipForeign)) {
      continue;
    }
    if (!source) return std::nullopt;
    modules.push_back(std::move(source->module));
    linked.ptx_arch = std::max(linked.ptx_arch, source->ptx_arch);
  }
  if (modules.empty()) {
    if (fault.error == 0) {
      fault = {kCudaInvalidKernelImage, "an image to be linked has no fatbins, or is cut off"};
    }
    return std::nullopt;
  }
  Result<ptx::Module> module = ptx::link(std::move(modules));
  // What the driver's linker answers to everything that it cannot do.
  if (!module) {
    fault = {kCudaUnknown, module.error().message()};
    return std::nullopt;
  }
  linked.module = std::move(*module);
  return linked;
}

ModuleCache::Entry ModuleCache::read(std::span<const std::byte> image,
                                     uint32_t max_registers) const {
  ImageFault fault;
  bool is_linked = fatbins_of(image).has_value();
  std::optional<Source> source = is_linked ? read_linked(image, fault) : read_source(image, fault);
  if (!source) return {nullptr, fault};
  if (const char* reason = fault_of(source->module)) return {nullptr, {kCudaInvalidPtx, reason}};
  std::string missing = ptx::unresolved(source->module);
  if (!missing.empty() && !(is_linked && has_link_flag(image, kLinkIncomplete))) {
    return {nullptr, {is_linked ? kCudaUnknown : kCudaInvalidPtx, missing}};
  }

  auto shared = std::make_shared<SharedModule>();
  shared->module = std::make_shared<const ptx::Module>(std::move(source->module));
  TableBuilder table(*shared, source->ptx_arch, arch_, max_registers);
  for (const ptx::Function& function : shared->module->functions) {
    if (!function.is_entry || function.is_extern) continue;
    auto found =
        std::find_if(source->resources.begin(), source->resources.end(),
                     [&function](const auto& entry) { return entry.name == function.name; });
    table.add_kernel(function, found == source->resources.end() ? nullptr : &*found);
  }
  for (size_t at = 0; at < shared->module->variables.size(); ++at) {
    const ptx::Variable& variable = shared->module->variables[at];
    bool has_address =
        variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst;
    if (has_address && !variable.is_extern) {
      table.add_variable(variable, static_cast<uint32_t>(at));
    }
  }
  if (!table.finish()) {
    return {nullptr, {kCudaMemoryAllocation, "the module has too many kernels and variables"}};
  }
  return {shared, {}};
}

}  // namespace cb::sim
