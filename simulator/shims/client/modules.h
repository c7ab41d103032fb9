#pragma once

// Device code. A module is registered (nvcc's start-up code) or loaded (cuModuleLoadData,
// cudaLibraryLoadData) from an image, and sent to the daemon when a kernel or variable of it is
// first used, as in CUDA's lazy loading. Kernels and variables have names; their sizes come from
// the table that the daemon answers with.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/protocol/protocol.h"
#include "simulator/shims/client/list.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {

struct Kernel;
struct Variable;

struct Module {
  enum class State { kNew, kLoaded, kFailed };

  const void* image = nullptr;  ///< a fatbin container; must stay as it is until loaded
  size_t image_bytes = 0;
  void* owned_image = nullptr;  ///< the same, when it is ours to free
  Mutex mutex;
  State state = State::kNew;
  cudaError_t error = cudaSuccess;  ///< kFailed: what every use returns
  char* fault = nullptr;            ///< kFailed: why, if that is known
  uint32_t max_registers = 0;       ///< most registers per thread; 0: any
  void* library = nullptr;          ///< the handle of the library or module of the API, if any
  uint32_t id = 0;

  void* table = nullptr;  ///< malloc memory that holds all of the following
  uint32_t num_kernels = 0;
  uint32_t num_variables = 0;
  uint32_t num_params = 0;
  uint32_t names_bytes = 0;
  const KernelInfo* kernels = nullptr;
  const VariableInfo* variables = nullptr;
  const ParamInfo* params = nullptr;
  const char* names = nullptr;

  List<void*> kernel_handles;
  List<Variable*> used_variables;
};

/// Settings of a kernel on one device.
struct KernelSettings {
  int max_dynamic_shared_bytes = -1;  ///< -1: what needs no opt-in
  int shared_carveout_percent = -1;
  bool nonportable_cluster = false;
  int cluster_policy = 0;             ///< cudaClusterSchedulingPolicy
  uint32_t required_cluster[3] = {};  ///< set at run time; all 0: none
};

struct Kernel {
  Module* module = nullptr;
  const char* name = nullptr;        ///< a copy that lives as long as the module
  const KernelInfo* info = nullptr;  ///< set by load_kernel
  KernelSettings settings[kMaxDevices];
};

struct Variable {
  Module* module = nullptr;
  const char* name = nullptr;
  uint64_t registered_bytes = 0;
  bool managed = false;
  int index = -1;  ///< in the module's table, -1 until loaded
  uint64_t bytes = 0;
  uint64_t addresses[kMaxDevices] = {};  ///< 0 until asked for
};

/// A module around an image in any form that inspect_image knows. An image that holds nothing we
/// can run gives a module that fails with a suitable error when it is used.
Module* create_module(const void* image);
/// A module whose image, in malloc memory, becomes its own.
Module* create_module_around(void* image, size_t bytes);
/// A module whose every use returns `error`.
Module* create_failed_module(cudaError_t error);
/// Removes it, its kernels and its variables, here and in the daemon.
void destroy_module(Module* module);

/// Sends the image unless that has been done. Why it is refused is said on stderr, too.
cudaError_t load_module(Module* module);

/// A kernel of that name; the module is not loaded for it. `handle` is what a cudaKernel_t, a
/// cudaFunction_t and a CUfunction hold.
Kernel* add_kernel(Module* module, const char* name, void** handle);
/// The handle of a kernel of that name in a loaded module, or nullptr.
void* find_kernel_by_name(Module* module, const char* name);
Kernel* find_kernel(const void* handle);
/// Loads the kernel's module; cudaErrorInvalidDeviceFunction when it has no such kernel.
cudaError_t load_kernel(Kernel* kernel);

/// Index of a variable in the table of a loaded module, or -1.
int find_variable_by_name(Module* module, const char* name);
Variable* add_variable(Module* module, const char* name, uint64_t bytes);
/// Address and size on `device`; loads the module. cudaErrorInvalidSymbol when there is none.
cudaError_t locate_variable(Variable* variable, int device, uint64_t* address, uint64_t* bytes);

inline const char* name_of(const Module& module, const KernelInfo& info) {
  return module.names + info.name_offset;
}

/// Modules of `device` lose their addresses there, because the daemon forgot the instances.
void forget_variable_addresses(int device);

}  // namespace cb::sim::client
