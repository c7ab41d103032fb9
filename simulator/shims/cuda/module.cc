// Modules and libraries. Both are loaded at once; a CUmodule may also come from a CUlibrary, which
// it is then the same handle as.

#include "simulator/shims/client/functions.h"
#include "simulator/shims/client/libraries.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

template <class Body>
CUresult with_library(CUlibrary handle, Body body) {
  return driver_call([&] {
    Module* module = find_library(handle);
    return module == nullptr ? cudaErrorInvalidResourceHandle : body(*module);
  });
}

template <class Handle, class Body>
CUresult with_module(Handle handle, Body body) {
  return context_call([&] {
    Module* module = find_library(handle);
    return module == nullptr ? cudaErrorInvalidResourceHandle : body(*module);
  });
}

template <class Handle>
void** as_handle(Handle* handle) {
  return reinterpret_cast<void**>(handle);
}

CUresult load(CUmodule* module, const void* image) {
  return context_call([&] { return load_library(as_handle(module), image); });
}

/// Reads the options of the compiler and of the library, and gives the former to `body`.
template <class Body>
cudaError_t with_options(const CUjit_option* jit, void** jit_values, unsigned jit_count,
                         const CUlibraryOption* library, void* const* library_values,
                         unsigned library_count, Body body) {
  JitOptions read;
  cudaError_t error =
      read_jit_options(reinterpret_cast<const int*>(jit), jit_values, jit_count, &read);
  if (error == cudaSuccess) {
    error =
        check_library_options(reinterpret_cast<const int*>(library), library_values, library_count);
  }
  return error == cudaSuccess ? body(read) : error;
}

cudaError_t count_kernels(const Module& module, unsigned* count) {
  if (count == nullptr) return cudaErrorInvalidValue;
  *count = module.num_kernels;
  return cudaSuccess;
}

}  // namespace

CB_DRIVER CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  return load(module, image);
}

CB_DRIVER CUresult cuModuleLoadDataEx(CUmodule* module, const void* image, unsigned count,
                                      CUjit_option* options, void** values) {
  return context_call([&] {
    return with_options(options, values, count, nullptr, nullptr, 0, [&](const JitOptions& read) {
      return load_library(as_handle(module), image, read);
    });
  });
}

CB_DRIVER CUresult cuModuleLoadFatBinary(CUmodule* module, const void* image) {
  return load(module, image);
}

CB_DRIVER CUresult cuModuleLoad(CUmodule* module, const char* path) {
  return context_call([&] { return load_library_file(as_handle(module), path); });
}

CB_DRIVER CUresult cuModuleUnload(CUmodule module) {
  return context_call([&] { return unload_library(module); });
}

CB_DRIVER CUresult cuModuleGetFunction(CUfunction* function, CUmodule handle, const char* name) {
  return with_module(
      handle, [&](Module& module) { return library_kernel(module, name, as_handle(function)); });
}

CB_DRIVER CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule handle,
                                        const char* name) {
  return with_module(handle, [&](Module& module) {
    return library_variable(module, name, as_handle(address), bytes);
  });
}

CB_DRIVER CUresult cuModuleGetFunctionCount(unsigned* count, CUmodule handle) {
  return with_module(handle, [&](Module& module) { return count_kernels(module, count); });
}

CB_DRIVER CUresult cuModuleEnumerateFunctions(CUfunction* functions, unsigned capacity,
                                              CUmodule handle) {
  return with_module(handle, [&](Module& module) {
    return library_kernels(module, as_handle(functions), capacity);
  });
}

CB_DRIVER CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode* mode) {
  return driver_call([&] {
    if (mode == nullptr) return cudaErrorInvalidValue;
    *mode = CU_MODULE_LAZY_LOADING;
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuLibraryLoadData(CUlibrary* library, const void* image, CUjit_option* jit,
                                     void** jit_values, unsigned jit_count,
                                     CUlibraryOption* options, void** values, unsigned count) {
  return driver_call([&] {
    return with_options(
        jit, jit_values, jit_count, options, values, count,
        [&](const JitOptions& read) { return load_library(as_handle(library), image, read); });
  });
}

CB_DRIVER CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* path, CUjit_option* jit,
                                         void** jit_values, unsigned jit_count,
                                         CUlibraryOption* options, void** values, unsigned count) {
  return driver_call([&] {
    return with_options(
        jit, jit_values, jit_count, options, values, count,
        [&](const JitOptions& read) { return load_library_file(as_handle(library), path, read); });
  });
}

CB_DRIVER CUresult cuLibraryUnload(CUlibrary library) {
  return driver_call([&] { return unload_library(library); });
}

CB_DRIVER CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary handle, const char* name) {
  return with_library(
      handle, [&](Module& module) { return library_kernel(module, name, as_handle(kernel)); });
}

CB_DRIVER CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return with_module(library, [&](Module&) {
    if (module == nullptr) return cudaErrorInvalidValue;
    *module = reinterpret_cast<CUmodule>(library);
    return cudaSuccess;
  });
}

CB_DRIVER CUresult cuLibraryGetGlobal(CUdeviceptr* address, size_t* bytes, CUlibrary handle,
                                      const char* name) {
  return with_module(handle, [&](Module& module) {
    return library_variable(module, name, as_handle(address), bytes);
  });
}

CB_DRIVER CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary handle) {
  return with_library(handle, [&](Module& module) { return count_kernels(module, count); });
}

CB_DRIVER CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned capacity,
                                             CUlibrary handle) {
  return with_library(handle, [&](Module& module) {
    return library_kernels(module, as_handle(kernels), capacity);
  });
}
