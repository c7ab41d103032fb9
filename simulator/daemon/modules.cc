#include "simulator/daemon/modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "simulator/daemon/call.h"

namespace cb::sim {
namespace {

bool has_address(const ptx::Variable& variable) {
  return !variable.is_extern &&
         (variable.space == ptx::Space::kGlobal || variable.space == ptx::Space::kConst);
}

/// What a symbol in an initial value stands for: a variable of the instance, or a function.
uint64_t symbol_value(const ptx::Module& module, const std::vector<uint64_t>& addresses,
                      const std::string& symbol) {
  for (size_t at = 0; at < module.variables.size(); ++at) {
    if (module.variables[at].name == symbol) return addresses[at];
  }
  for (size_t at = 0; at < module.functions.size(); ++at) {
    if (module.functions[at].name == symbol) return function_handle(static_cast<uint32_t>(at));
  }
  return 0;
}

void initialise(const ptx::Module& module, const ptx::Variable& variable,
                const std::vector<uint64_t>& addresses, uint64_t base) {
  auto* memory = reinterpret_cast<std::byte*>(base);
  std::memset(memory, 0, variable.bytes);
  size_t initial = std::min<size_t>(variable.initial.size(), variable.bytes);
  if (initial > 0) std::memcpy(memory, variable.initial.data(), initial);
  for (const auto& fixup : variable.fixups) {
    uint64_t value =
        symbol_value(module, addresses, fixup.symbol) + static_cast<uint64_t>(fixup.addend);
    value = fixup.shift_bits < 64 ? value >> fixup.shift_bits : 0;
    size_t bytes = std::min<size_t>(fixup.bytes, sizeof value);
    if (fixup.offset > variable.bytes || bytes > variable.bytes - fixup.offset) continue;
    std::memcpy(memory + fixup.offset, &value, bytes);
  }
}

/// Appends what lies in staging to the thread's image. False: the call has ended.
bool take_piece(Call& call) {
  HostThread& thread = call.thread;
  if (call.arg(0) > kStagingBytes) {
    call.malformed("more of a module than staging memory holds");
    return false;
  }
  if (thread.image.size() + call.arg(0) > kProcessQuota.image_bytes) {
    thread.image.clear();
    call.cluster.report(
        {.kind = Finding::Kind::kLimit,
         .time_ps = thread.clock,
         .place = {.rank = call.process.rank},
         .detail = fmt::format("a module has more than {} bytes", kProcessQuota.image_bytes)});
    call.fail(kCudaMemoryAllocation);
    return false;
  }
  const std::byte* staging = thread.connection.staging();
  thread.image.insert(thread.image.end(), staging, staging + call.arg(0));
  if (call.arg(1) == 0) return true;
  call.done(call.cluster.costs.call);
  return false;
}

void refuse_image(Call& call, const ImageFault& fault) {
  auto kind =
      fault.error == kCudaNotPermitted ? Finding::Kind::kNotPermitted : Finding::Kind::kUnsupported;
  call.cluster.report({.kind = kind,
                       .time_ps = call.thread.clock,
                       .place = {.rank = call.process.rank},
                       .detail = fault.message});
  Answer answer{.status = fault.error};
  std::string text = fault.message.substr(0, kMaxImageFaultBytes);
  answer.payload.resize(text.size());
  std::memcpy(answer.payload.data(), text.data(), text.size());
  call.done(call.cluster.costs.call, answer);
}

}  // namespace

std::shared_ptr<const std::vector<uint64_t>> instance(Cluster& cluster, HostProcess& process,
                                                      LoadedModule& module, int device) {
  auto& made = module.instances[device];
  if (made != nullptr) return made;
  const ptx::Module& source = *module.shared->module;
  std::vector<uint64_t> addresses(source.variables.size());
  for (size_t at = 0; at < source.variables.size(); ++at) {
    const ptx::Variable& variable = source.variables[at];
    if (!has_address(variable)) continue;
    const Allocation* allocation =
        cluster.memory.allocate({.rank = process.rank,
                                 .device = device,
                                 .bytes = variable.bytes,
                                 .kind = Allocation::Kind::kModule,
                                 .label = "variable " + demangle(variable.name),
                                 .constant = variable.space == ptx::Space::kConst,
                                 .zeroed = true});
    if (allocation == nullptr) return nullptr;
    addresses[at] = allocation->base;
  }
  for (size_t at = 0; at < source.variables.size(); ++at) {
    if (addresses[at] != 0) initialise(source, source.variables[at], addresses, addresses[at]);
  }
  made = std::make_shared<const std::vector<uint64_t>>(std::move(addresses));
  return made;
}

void forget_instances(HostProcess& process, int device) {
  for (auto& [id, module] : process.modules) module->instances.erase(device);
}

void module_load(Call& call) {
  if (!take_piece(call)) return;
  HostProcess& process = call.process;
  std::vector<std::byte> image = std::move(call.thread.image);
  call.thread.image.clear();
  if (process.modules.size() >= kProcessQuota.modules ||
      process.image_bytes + image.size() > kProcessQuota.all_images_bytes) {
    return call.fail(kCudaMemoryAllocation);
  }
  ImageFault fault;
  std::shared_ptr<SharedModule> shared = call.cluster.modules.load(
      image, static_cast<uint32_t>(std::min<uint64_t>(call.arg(2), UINT32_MAX)), fault);
  if (shared == nullptr) return refuse_image(call, fault);
  auto module = std::make_shared<LoadedModule>();
  module->shared = shared;
  module->image_bytes = image.size();
  process.image_bytes += image.size();
  uint32_t id = process.next_module++;
  process.modules.emplace(id, std::move(module));
  std::memcpy(call.thread.connection.staging(), shared->table.data(), shared->table.size());
  Answer answer;
  answer.results[0] = id;
  answer.results[1] = shared->table.size();
  call.done(call.cluster.costs.module_load, answer);
}

void module_unload(Call& call) {
  auto found = call.process.modules.find(static_cast<uint32_t>(call.arg(0)));
  if (found == call.process.modules.end()) return call.fail(kCudaInvalidResourceHandle);
  // Kernels that still run hold the program; the memory of variables stays until the process ends,
  // because they may still use it.
  call.process.image_bytes -= found->second->image_bytes;
  call.process.modules.erase(found);
  call.done(call.cluster.costs.call);
}

void symbol_address(Call& call) {
  std::optional<int> device = call.device(call.arg(2));
  if (!device) return;
  auto found = call.process.modules.find(static_cast<uint32_t>(call.arg(0)));
  if (found == call.process.modules.end() || call.arg(0) > UINT32_MAX) {
    return call.fail(kCudaInvalidResourceHandle);
  }
  LoadedModule& module = *found->second;
  if (call.arg(1) >= module.shared->variables.size()) return call.fail(kCudaInvalidValue);
  auto addresses = instance(call.cluster, call.process, module, *device);
  if (addresses == nullptr) return call.fail(kCudaMemoryAllocation);
  uint32_t index = module.shared->variables[call.arg(1)];
  Answer answer;
  answer.results[0] = (*addresses)[index];
  answer.results[1] = module.shared->module->variables[index].bytes;
  call.done(call.cluster.costs.call, answer);
}

}  // namespace cb::sim
