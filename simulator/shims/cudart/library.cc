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

}  // namespace

// The JIT and library options tune how hardware's machine code is made; there is none here.
CB_API cudaError_t cudaLibraryLoadData(cudaLibrary_t* library, const void* code, cudaJitOption*,
                                       void**, unsigned, cudaLibraryOption*, void**, unsigned) {
  return api([&] { return load_library(reinterpret_cast<void**>(library), code); });
}

CB_API cudaError_t cudaLibraryLoadFromFile(cudaLibrary_t* library, const char* path, cudaJitOption*,
                                           void**, unsigned, cudaLibraryOption*, void**, unsigned) {
  return api([&] { return load_library_file(reinterpret_cast<void**>(library), path); });
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
