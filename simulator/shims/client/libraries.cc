#include "simulator/shims/client/libraries.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/fatbin.h"
#include "simulator/shims/client/handles.h"
#include "simulator/shims/client/thread.h"

namespace cb::sim::client {
namespace {

struct Library {
  Module* module = nullptr;
  bool is_program = false;  ///< of the program itself: lives as long as that
};

HandleTable<Library, 1 << 14> libraries;

constexpr size_t kSlackBytes = std::max(sizeof(FatbinHeader), sizeof(LinkedImage));

}  // namespace

cudaError_t check_library_options(const int* options, void* const* values, unsigned count) {
  if (count > 0 && (options == nullptr || values == nullptr)) return cudaErrorInvalidValue;
  for (unsigned at = 0; at < count; ++at) {
    switch (options[at]) {
      case cudaLibraryBinaryIsPreserved:  // a promise about the image, which is copied anyway
        break;
      case cudaLibraryHostUniversalFunctionAndDataTable:
        return CB_REFUSE("cudaLibraryHostUniversalFunctionAndDataTable");
      default:
        return cudaErrorInvalidValue;
    }
  }
  return cudaSuccess;
}

char* read_image_file(const char* path, size_t* bytes) {
  FILE* file = fopen(path, "rbe");
  if (file == nullptr) return nullptr;
  char* text = nullptr;
  if (fseek(file, 0, SEEK_END) == 0) {
    long size = ftell(file);
    bool fits = size >= 0 && static_cast<uint64_t>(size) <= kMaxFatbinBytes;
    if (fits && fseek(file, 0, SEEK_SET) == 0) {
      // Some room behind the end: a container's header may claim more than a short file holds.
      text = static_cast<char*>(calloc(1, size + kSlackBytes));
      if (text != nullptr && fread(text, 1, size, file) != static_cast<size_t>(size)) {
        free(text);
        text = nullptr;
      }
    }
    const void* data;
    size_t image_bytes = 0;
    ImageKind kind =
        text == nullptr ? ImageKind::kUnknown : inspect_image(text, &data, &image_bytes);
    bool has_size = kind == ImageKind::kContainer || kind == ImageKind::kLinked;
    if (has_size && image_bytes > static_cast<size_t>(size)) {
      memset(text, 0, kSlackBytes);  // truncated: no image
    }
    if (text != nullptr) *bytes = static_cast<size_t>(size);
  }
  fclose(file);
  return text;
}

cudaError_t load_library(void** handle, const void* image, const JitOptions& options) {
  if (handle == nullptr || image == nullptr) return cudaErrorInvalidValue;
  Module* module = create_module(image);
  if (module == nullptr) return cudaErrorMemoryAllocation;
  cudaError_t error = load_module_with(module, options);
  if (error != cudaSuccess) {
    destroy_module(module);
    return error;
  }
  Library* library = libraries.create(handle);
  if (library == nullptr) {
    destroy_module(module);
    return cudaErrorMemoryAllocation;
  }
  library->module = module;
  module->library = *handle;
  return cudaSuccess;
}

cudaError_t library_of(Module& module, void** handle) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  LockAcrossCalls lock(module.mutex);
  if (module.library == nullptr) {
    Library* library = libraries.create(&module.library);
    if (library == nullptr) return cudaErrorMemoryAllocation;
    library->module = &module;
    library->is_program = true;
  }
  *handle = module.library;
  return cudaSuccess;
}

void forget_library_of(Module& module) {
  if (module.library != nullptr) libraries.destroy(module.library);
  module.library = nullptr;
}

cudaError_t load_library_file(void** handle, const char* path, const JitOptions& options) {
  if (handle == nullptr || path == nullptr) return cudaErrorInvalidValue;
  size_t bytes = 0;
  char* image = read_image_file(path, &bytes);
  if (image == nullptr) return cudaErrorFileNotFound;
  cudaError_t error = load_library(handle, image, options);
  free(image);
  return error;
}

cudaError_t unload_library(void* handle) {
  Library* library = libraries.find(handle);
  if (library == nullptr || library->is_program) return cudaErrorInvalidResourceHandle;
  Module* module = library->module;
  if (!libraries.destroy(handle)) return cudaErrorInvalidResourceHandle;
  destroy_module(module);
  return cudaSuccess;
}

Module* find_library(const void* handle) {
  Library* library = libraries.find(handle);
  return library == nullptr ? nullptr : library->module;
}

cudaError_t library_kernel(Module& module, const char* name, void** kernel) {
  if (kernel == nullptr || name == nullptr) return cudaErrorInvalidValue;
  *kernel = find_kernel_by_name(&module, name);
  return *kernel == nullptr ? cudaErrorSymbolNotFound : cudaSuccess;
}

cudaError_t library_variable(Module& module, const char* name, void** pointer, size_t* bytes) {
  if (name == nullptr) return cudaErrorInvalidValue;
  Variable* variable = nullptr;
  {
    LockAcrossCalls lock(module.mutex);
    for (size_t at = 0; at < module.used_variables.size() && variable == nullptr; ++at) {
      if (strcmp(module.used_variables[at]->name, name) == 0) variable = module.used_variables[at];
    }
  }
  if (variable == nullptr) {
    int index = find_variable_by_name(&module, name);
    if (index < 0) return cudaErrorSymbolNotFound;
    variable = add_variable(&module, name, module.variables[index].bytes);
    if (variable == nullptr) return cudaErrorMemoryAllocation;
  }
  uint64_t address, size;
  cudaError_t error = locate_variable(variable, this_thread().device(), &address, &size);
  if (error != cudaSuccess) return error;
  if (pointer != nullptr) *pointer = reinterpret_cast<void*>(address);
  if (bytes != nullptr) *bytes = size;
  return cudaSuccess;
}

cudaError_t library_kernels(Module& module, void** kernels, unsigned capacity) {
  if (kernels == nullptr) return cudaErrorInvalidValue;
  for (unsigned at = 0; at < capacity && at < module.num_kernels; ++at) {
    kernels[at] = find_kernel_by_name(&module, name_of(module, module.kernels[at]));
    if (kernels[at] == nullptr) return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}

}  // namespace cb::sim::client
