#include "simulator/shims/client/modules.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/fatbin.h"
#include "simulator/shims/client/handles.h"
#include "simulator/shims/client/module_table.h"
#include "simulator/shims/client/report.h"

namespace cb::sim::client {
namespace {

HandleTable<Kernel, 1 << 16> kernels;

Mutex modules_mutex;
List<Module*> modules;

template <class T>
T* make() {
  void* memory = calloc(1, sizeof(T));
  return memory == nullptr ? nullptr : new (memory) T();
}

Module* new_module() {
  auto* module = make<Module>();
  if (module == nullptr) return nullptr;
  Lock lock(modules_mutex);
  modules.push(module);
  return module;
}

/// Keeps why a module cannot be used, and says it.
void note_fault(Module* module, const char* text) {
  if (*text == '\0') return;
  report("device code is refused: %s", text);
  free(module->fault);
  module->fault = strdup(text);
}

/// Sends the image in pieces of the staging memory's size. A module that the daemon cannot read, or
/// that holds no PTX, gives the error that CUDA gives for an image it cannot run.
cudaError_t send_image(Module* module) {
  Thread& thread = this_thread();
  auto* bytes = static_cast<const uint8_t*>(module->image);
  size_t done = 0;
  for (;;) {
    size_t piece = std::min<size_t>(module->image_bytes - done, kStagingBytes);
    bool more = done + piece < module->image_bytes;
    // Staging belongs to this thread's connection, so link state and staging go together.
    cudaError_t error = link_error();
    if (error != cudaSuccess) return error;
    memcpy(thread.staging, bytes + done, piece);
    char text[kMaxImageFaultBytes + 1];
    Call call(Op::kModuleLoad);
    call.args(piece, more ? 1 : 0, module->max_registers).receive(text, sizeof text - 1);
    error = call.wait();
    if (error != cudaSuccess) {
      text[call.received_bytes()] = '\0';
      note_fault(module, text);
      return error;
    }
    done += piece;
    if (more) continue;
    module->id = static_cast<uint32_t>(call.result(0));
    const char* fault = read_module_table(thread.staging, call.result(1), module);
    if (fault == nullptr) return cudaSuccess;
    lose_link(fault);
    return cudaErrorSystemNotReady;
  }
}

/// Errors of the connection or of the current context say nothing about the image.
bool is_about_image(cudaError_t error) {
  return error != cudaErrorSystemNotReady && error != cudaErrorNoDevice &&
         error != cudaErrorInitializationError && !breaks_context(error);
}

}  // namespace

Module* create_failed_module(cudaError_t error) {
  Module* module = new_module();
  if (module == nullptr) return nullptr;
  module->state = Module::State::kFailed;
  module->error = error;
  return module;
}

Module* create_module(const void* image) {
  const void* data = nullptr;
  size_t bytes = 0;
  switch (inspect_image(image, &data, &bytes)) {
    case ImageKind::kUnknown:
      return create_failed_module(cudaErrorInvalidKernelImage);
    case ImageKind::kCubin: {
      Module* module = create_failed_module(cudaErrorNoKernelImageForDevice);
      if (module == nullptr) return nullptr;
      note_fault(module,
                 "a cubin is machine code, which is not executed here; load PTX, or a fatbin with "
                 "PTX in it");
      return module;
    }
    case ImageKind::kLinked:
    case ImageKind::kContainer: {
      Module* module = new_module();
      if (module == nullptr) return nullptr;
      module->image = data;
      module->image_bytes = bytes;
      return module;
    }
    case ImageKind::kPtxText: {
      size_t wrapped_bytes = 0;
      void* wrapped = wrap_ptx(static_cast<const char*>(data), bytes, &wrapped_bytes);
      return create_module_around(wrapped, wrapped_bytes);
    }
  }
  return nullptr;
}

Module* create_module_around(void* image, size_t bytes) {
  Module* module = image == nullptr ? nullptr : new_module();
  if (module == nullptr) {
    free(image);
    return nullptr;
  }
  module->image = module->owned_image = image;
  module->image_bytes = bytes;
  return module;
}

void destroy_module(Module* module) {
  {
    Lock lock(modules_mutex);
    for (size_t at = 0; at < modules.size(); ++at) {
      if (modules[at] != module) continue;
      modules.erase(at);
      break;
    }
  }
  for (size_t at = 0; at < module->kernel_handles.size(); ++at) {
    Kernel* kernel = kernels.find(module->kernel_handles[at]);
    if (kernel == nullptr) continue;
    free(const_cast<char*>(kernel->name));
    kernels.destroy(module->kernel_handles[at]);
  }
  for (size_t at = 0; at < module->used_variables.size(); ++at) {
    free(const_cast<char*>(module->used_variables[at]->name));
    free(module->used_variables[at]);
  }
  if (module->state == Module::State::kLoaded && link_error() == cudaSuccess) {
    Call(Op::kModuleUnload).args(module->id).send();
  }
  free(module->table);
  free(module->owned_image);
  free(module->fault);
  free(module);
}

cudaError_t load_module(Module* module) {
  LockAcrossCalls lock(module->mutex);
  if (module->state == Module::State::kLoaded) return cudaSuccess;
  if (module->state == Module::State::kFailed) return module->error;
  cudaError_t error = send_image(module);
  if (error == cudaSuccess) {
    module->state = Module::State::kLoaded;
  } else if (is_about_image(error)) {
    module->state = Module::State::kFailed;
    module->error = error;
  }
  return error;
}

Kernel* add_kernel(Module* module, const char* name, void** handle) {
  Kernel* kernel = kernels.create(handle);
  if (kernel == nullptr) return nullptr;
  kernel->module = module;
  kernel->name = strdup(name);
  LockAcrossCalls lock(module->mutex);
  module->kernel_handles.push(*handle);
  return kernel;
}

void* find_kernel_by_name(Module* module, const char* name) {
  {
    LockAcrossCalls lock(module->mutex);
    for (size_t at = 0; at < module->kernel_handles.size(); ++at) {
      Kernel* kernel = kernels.find(module->kernel_handles[at]);
      if (kernel != nullptr && strcmp(kernel->name, name) == 0) return module->kernel_handles[at];
    }
  }
  for (uint32_t at = 0; at < module->num_kernels; ++at) {
    if (strcmp(name_of(*module, module->kernels[at]), name) != 0) continue;
    void* handle = nullptr;
    Kernel* kernel = add_kernel(module, name, &handle);
    if (kernel == nullptr) return nullptr;
    kernel->info = &module->kernels[at];
    return handle;
  }
  return nullptr;
}

Kernel* find_kernel(const void* handle) { return kernels.find(handle); }

cudaError_t load_kernel(Kernel* kernel) {
  if (kernel->info != nullptr) return cudaSuccess;
  Module& module = *kernel->module;
  cudaError_t error = load_module(&module);
  if (error != cudaSuccess) return error;
  for (uint32_t at = 0; at < module.num_kernels; ++at) {
    if (strcmp(name_of(module, module.kernels[at]), kernel->name) != 0) continue;
    kernel->info = &module.kernels[at];
    return cudaSuccess;
  }
  return cudaErrorInvalidDeviceFunction;
}

int find_variable_by_name(Module* module, const char* name) {
  for (uint32_t at = 0; at < module->num_variables; ++at) {
    if (strcmp(module->names + module->variables[at].name_offset, name) == 0) {
      return static_cast<int>(at);
    }
  }
  return -1;
}

Variable* add_variable(Module* module, const char* name, uint64_t bytes) {
  auto* variable = make<Variable>();
  if (variable == nullptr) return nullptr;
  variable->module = module;
  variable->name = strdup(name);
  variable->registered_bytes = bytes;
  LockAcrossCalls lock(module->mutex);
  module->used_variables.push(variable);
  return variable;
}

cudaError_t locate_variable(Variable* variable, int device, uint64_t* address, uint64_t* bytes) {
  if (variable->managed) return CB_REFUSE("__managed__");
  cudaError_t error = load_module(variable->module);
  if (error != cudaSuccess) return error;
  if (variable->index < 0) {
    variable->index = find_variable_by_name(variable->module, variable->name);
    if (variable->index < 0) return cudaErrorInvalidSymbol;
    variable->bytes = variable->module->variables[variable->index].bytes;
  }
  if (variable->addresses[device] == 0) {
    Call call(Op::kSymbolAddress);
    call.args(variable->module->id, variable->index, device);
    error = call.wait();
    if (error != cudaSuccess) return error;
    variable->addresses[device] = call.result(0);
    Allocation allocation;
    allocation.base = call.result(0);
    allocation.bytes = variable->bytes;
    allocation.device = device;
    allocation.kind = AllocationKind::kSymbol;
    add_allocation(allocation);
  }
  *address = variable->addresses[device];
  *bytes = variable->bytes;
  return cudaSuccess;
}

void forget_variable_addresses(int device) {
  Lock lock(modules_mutex);
  for (size_t at = 0; at < modules.size(); ++at) {
    for (size_t of = 0; of < modules[at]->used_variables.size(); ++of) {
      modules[at]->used_variables[of]->addresses[device] = 0;
    }
  }
}

}  // namespace cb::sim::client
