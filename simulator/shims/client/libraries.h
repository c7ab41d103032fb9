#pragma once

// Device code that a program loads itself: cudaLibrary_t, CUlibrary and CUmodule. All are loaded at
// once, so that an image that cannot run fails at the call that brings it.

#include <cuda_runtime_api.h>

#include "simulator/shims/client/modules.h"

namespace cb::sim::client {

cudaError_t load_library(void** handle, const void* image);
cudaError_t load_library_file(void** handle, const char* path);
/// cudaErrorInvalidResourceHandle for anything that is not loaded.
cudaError_t unload_library(void* handle);
/// nullptr for anything that is not loaded.
Module* find_library(const void* handle);

cudaError_t library_kernel(Module& module, const char* name, void** kernel);
/// Address and size of a variable on the current device; either result may be NULL.
/// cudaErrorSymbolNotFound when there is none of that name.
cudaError_t library_variable(Module& module, const char* name, void** pointer, size_t* bytes);
/// Handles of the first `capacity` kernels, in the order of the module.
cudaError_t library_kernels(Module& module, void** kernels, unsigned capacity);

}  // namespace cb::sim::client
