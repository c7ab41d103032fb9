#include "simulator/shims/client/libraries.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

template <class Body>
cudaError_t with_library(cudaLibrary_t handle, Body body) {
  return api([&] {
    Module* module = find_library(handle);
    return module == nullptr ? cudaErrorInvalidResourceHandle : body(*module);
  });
}

template <class Body>
cudaError_t with_options(const cudaJitOption* jit, void** jit_values, unsigned jit_count,
                         const cudaLibraryOption* options, void* const* values, unsigned count,
                         Body body) {
  return api([&] {
    JitOptions read;
    cudaError_t error =
        read_jit_options(reinterpret_cast<const int*>(jit), jit_values, jit_count, &read);
    if (error == cudaSuccess) {
      error = check_library_options(reinterpret_cast<const int*>(options), values, count);
    }
    return error == cudaSuccess ? body(read) : error;
  });
}

}  // namespace

CB_API cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption* jit,
                                       void** jit_values, unsigned jit_count,
                                       cudaLibraryOption* options, void** values, unsigned count) {
  return with_options(jit, jit_values, jit_count, options, values, count,
                      [&](const JitOptions& read) {
                        return load_library(reinterpret_cast<void**>(library), code, read);
                      });
}

CB_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path,
                                           cudaJitOption* jit, void** jit_values,
                                           unsigned jit_count, cudaLibraryOption* options,
                                           void** values, unsigned count) {
  return with_options(jit, jit_values, jit_count, options, values, count,
                      [&](const JitOptions& read) {
                        return load_library_file(reinterpret_cast<void**>(library), path, read);
                      });
}

CB_API cudaError_t cudaLibraryUnload(cudaLibrary_t library) {
  return api([&] { return unload_library(library); });
}

CB_API cudaError_t cudaLibraryGetKernel(cudaKernel_t* kernel, cudaLibrary_t library,
                                        const char* name) {
  return with_library(library, [&](Module& module) {
    return library_kernel(module, name, reinterpret_cast<void**>(kernel));
  });
}

CB_API cudaError_t cudaLibraryGetGlobal(void** pointer, size_t* bytes, cudaLibrary_t library,
                                        const char* name) {
  return with_library(
      library, [&](Module& module) { return library_variable(module, name, pointer, bytes); });
}

CB_API cudaError_t cudaLibraryGetKernelCount(unsigned* count, cudaLibrary_t library) {
  return with_library(library, [&](Module& module) {
    if (count == nullptr) return cudaErrorInvalidValue;
    *count = module.num_kernels;
    return cudaSuccess;
  });
}

CB_API cudaError_t cudaLibraryEnumerateKernels(cudaKernel_t* kernels, unsigned capacity,
                                               cudaLibrary_t library) {
  return with_library(library, [&](Module& module) {
    return library_kernels(module, reinterpret_cast<void**>(kernels), capacity);
  });
}
