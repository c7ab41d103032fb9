#include "simulator/shims/client/module_table.h"

#include <cstdlib>
#include <cstring>

#include "simulator/shims/client/modules.h"

namespace cb::sim::client {
namespace {

const char* check_kernel(const KernelInfo& info, const Module& module) {
  if (info.name_offset >= module.names_bytes) return "a kernel's name is outside the names";
  if (info.first_param > module.num_params ||
      info.num_params > module.num_params - info.first_param) {
    return "a kernel's parameters are outside the table";
  }
  if (info.param_bytes > kMaxPayloadBytes - sizeof(Launch))
    return "a kernel's parameters are too long";
  for (uint32_t at = 0; at < info.num_params; ++at) {
    const ParamInfo& param = module.params[info.first_param + at];
    if (param.offset > info.param_bytes || param.bytes > info.param_bytes - param.offset) {
      return "a parameter lies outside its kernel's parameters";
    }
  }
  return nullptr;
}

}  // namespace

const char* read_module_table(const uint8_t* staging, uint64_t bytes, Module* module) {
  if (bytes < sizeof(ModuleTable) || bytes > kStagingBytes) return "the module table has no size";
  // Copied first: another process could change what is in staging.
  auto* table = static_cast<uint8_t*>(malloc(bytes));
  if (table == nullptr) return "no memory for the module table";
  memcpy(table, staging, bytes);
  ModuleTable header;
  memcpy(&header, table, sizeof header);
  uint64_t kernels_at = sizeof header;
  uint64_t variables_at = kernels_at + uint64_t{header.num_kernels} * sizeof(KernelInfo);
  uint64_t params_at = variables_at + uint64_t{header.num_variables} * sizeof(VariableInfo);
  uint64_t names_at = params_at + uint64_t{header.num_params} * sizeof(ParamInfo);
  const char* fault = nullptr;
  if (names_at + header.names_bytes != bytes) {
    fault = "the module table has another size than it says";
  } else if (header.names_bytes > 0 && table[bytes - 1] != '\0') {
    fault = "the module table's names do not end";
  }
  if (fault == nullptr) {
    module->table = table;
    module->num_kernels = header.num_kernels;
    module->num_variables = header.num_variables;
    module->num_params = header.num_params;
    module->names_bytes = header.names_bytes;
    module->kernels = reinterpret_cast<const KernelInfo*>(table + kernels_at);
    module->variables = reinterpret_cast<const VariableInfo*>(table + variables_at);
    module->params = reinterpret_cast<const ParamInfo*>(table + params_at);
    module->names = reinterpret_cast<const char*>(table + names_at);
    for (uint32_t at = 0; at < header.num_kernels && fault == nullptr; ++at) {
      fault = check_kernel(module->kernels[at], *module);
    }
    for (uint32_t at = 0; at < header.num_variables && fault == nullptr; ++at) {
      if (module->variables[at].name_offset >= header.names_bytes) {
        fault = "a variable's name is outside the names";
      }
    }
  }
  if (fault != nullptr) {
    free(table);
    module->table = nullptr;
    module->num_kernels = module->num_variables = 0;
  }
  return fault;
}

}  // namespace cb::sim::client
