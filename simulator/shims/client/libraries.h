#pragma once

// Device code that a program loads itself: cudaLibrary_t, CUlibrary and CUmodule. All are loaded at
// once, so that an image that cannot run fails at the call that brings it.

#include <cuda_runtime_api.h>

#include "simulator/shims/client/jit.h"
#include "simulator/shims/client/modules.h"

namespace cb::sim::client {

cudaError_t load_library(void** handle, const void* image, const JitOptions& options = {});
cudaError_t load_library_file(void** handle, const char* path, const JitOptions& options = {});
/// Options of cudaLibraryLoadData and its kin, whose values are not the driver's.
cudaError_t check_library_options(const int* options, void* const* values, unsigned count);
/// The whole file with a NUL behind it, in malloc memory; nullptr when it cannot be read.
char* read_image_file(const char* path, size_t* bytes);
/// The handle of the module that a kernel is in; one for the program's own modules, too.
cudaError_t library_of(Module& module, void** handle);
/// The program's own module goes, and with it the handle that library_of gave.
void forget_library_of(Module& module);
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
