// What nvcc's start-up code calls before main: it registers each fatbin, then the kernels and
// variables in it, by the address of a host function or object that stands for them. Nothing is
// sent to the simulator here.

#include "simulator/shims/cudart/registration.h"

#include <cstdlib>

#include "simulator/shims/client/fatbin.h"
#include "simulator/shims/client/libraries.h"
#include "simulator/shims/client/list.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

Mutex mutex;
AddressMap<void*> functions;      // host stub -> kernel handle
AddressMap<Variable*> variables;  // host shadow -> variable

/// What the `void**` of the registration functions points to.
struct FatbinHandle {
  Module* module;
};

Module* module_of(void** handle) { return reinterpret_cast<FatbinHandle*>(handle)->module; }

/// Relocatable device code (nvcc -rdc=true): the code of all files, linked here again, since what
/// nvcc linked is machine code. The runtime on the device (libcudadevrt), which nvcc always adds,
/// is machine code, too.
Module* linked_module(const FatbinWrapper* wrapper) {
  List<Bytes> containers;
  for (const void* const* file = wrapper->linked; file != nullptr && *file != nullptr; ++file) {
    Bytes container;
    if (inspect_image(*file, &container.data, &container.size) != ImageKind::kContainer) {
      containers.release();
      return create_failed_module(cudaErrorInvalidKernelImage);
    }
    containers.push(container);
  }
  size_t bytes = 0;
  void* image = containers.size() == 0 ? nullptr
                                       : join_containers(&containers[0], containers.size(),
                                                         cb::sim::kLinkSkipForeign, &bytes);
  containers.release();
  return image == nullptr ? create_failed_module(cudaErrorInvalidKernelImage)
                          : create_module_around(image, bytes);
}

Module* module_for(const FatbinWrapper* wrapper) {
  if (wrapper->magic != kWrapperMagic) return create_failed_module(cudaErrorInvalidKernelImage);
  return wrapper->version == 2 ? linked_module(wrapper) : create_module(wrapper->data);
}

}  // namespace

namespace cb::sim::client {

void* find_function_handle(const void* func) {
  {
    Lock lock(mutex);
    if (void* handle = functions.get(func)) return handle;
  }
  return find_kernel(func) == nullptr ? nullptr : const_cast<void*>(func);
}

Kernel* find_function(const void* func) { return find_kernel(find_function_handle(func)); }

Variable* find_symbol(const void* symbol) {
  Lock lock(mutex);
  return variables.get(symbol);
}

}  // namespace cb::sim::client

CB_API void** __cudaRegisterFatBinary(void* wrapper) {
  auto* handle = static_cast<FatbinHandle*>(malloc(sizeof(FatbinHandle)));
  if (handle == nullptr) abort();
  handle->module = module_for(static_cast<const FatbinWrapper*>(wrapper));
  if (handle->module == nullptr) abort();
  return reinterpret_cast<void**>(handle);
}

CB_API void __cudaRegisterFatBinaryEnd(void**) {}

CB_API void __cudaUnregisterFatBinary(void** handle) {
  if (handle == nullptr) return;
  Module* module = module_of(handle);
  {
    Lock lock(mutex);
    functions.erase_if([module](void* kernel_handle) {
      Kernel* kernel = find_kernel(kernel_handle);
      return kernel == nullptr || kernel->module == module;
    });
    variables.erase_if([module](Variable* variable) { return variable->module == module; });
  }
  forget_library_of(*module);
  destroy_module(module);
  free(handle);
}

CB_API void __cudaRegisterFunction(void** handle, const char* host_function, char*,
                                   const char* name, int, uint3*, uint3*, dim3*, dim3*, int*) {
  void* kernel = nullptr;
  if (add_kernel(module_of(handle), name, &kernel) == nullptr) {
    report("there are too many kernels: %s is not registered", name);
    return;
  }
  Lock lock(mutex);
  functions.set(host_function, kernel);
}

CB_API void __cudaRegisterVar(void** handle, char* host_variable, char*, const char* name, int,
                              size_t bytes, int, int) {
  Variable* variable = add_variable(module_of(handle), name, bytes);
  Lock lock(mutex);
  if (variable != nullptr) variables.set(host_variable, variable);
}

CB_API void __cudaRegisterManagedVar(void** handle, void** host_variable, char*, const char* name,
                                     int, size_t bytes, int, int) {
  Variable* variable = add_variable(module_of(handle), name, bytes);
  if (variable == nullptr) return;
  variable->managed = true;
  Lock lock(mutex);
  variables.set(host_variable, variable);
}

/// Called before the first access to a __managed__ variable, whose address has to be known then.
CB_API char __cudaInitModule(void** handle) {
  static bool said;
  Module* module = module_of(handle);
  for (size_t at = 0; at < module->used_variables.size(); ++at) {
    if (module->used_variables[at]->managed) report_unsupported("__managed__", said);
  }
  return 1;
}
