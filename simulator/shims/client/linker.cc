#include "simulator/shims/client/linker.h"

#include <cuda.h>

#include <cstdlib>
#include <cstring>

#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/fatbin.h"
#include "simulator/shims/client/handles.h"
#include "simulator/shims/client/libraries.h"
#include "simulator/shims/client/list.h"

namespace cb::sim::client {
namespace {

struct LinkState {
  JitOptions options;
  List<Bytes> inputs;  ///< containers in malloc memory
  void* image = nullptr;
};

HandleTable<LinkState, 1 << 10> links;

/// A container, in malloc memory, of what the program adds; empty when it is nothing of the kind.
Bytes container_of(int type, const void* data, size_t bytes) {
  // The text, or the end of a container that is cut off, must not be read beyond.
  auto* copy = static_cast<char*>(calloc(1, bytes + sizeof(FatbinHeader)));
  if (copy == nullptr) return {};
  memcpy(copy, data, bytes);
  const void* start = nullptr;
  size_t size = 0;
  ImageKind kind = inspect_image(copy, &start, &size);
  if (type == CU_JIT_INPUT_PTX && kind == ImageKind::kPtxText) {
    size_t wrapped_bytes = 0;
    void* wrapped = wrap_ptx(copy, size, &wrapped_bytes);
    free(copy);
    return {wrapped, wrapped_bytes};
  }
  // A wrapper would lead out of the copy.
  if (type == CU_JIT_INPUT_FATBINARY && kind == ImageKind::kContainer && start == copy &&
      size <= bytes) {
    return {copy, size};
  }
  free(copy);
  return {};
}

cudaError_t check_type(int type) {
  switch (type) {
    case CU_JIT_INPUT_PTX:
    case CU_JIT_INPUT_FATBINARY:
      return cudaSuccess;
    case CU_JIT_INPUT_CUBIN: {
      static bool said;
      report_unsupported("CU_JIT_INPUT_CUBIN (machine code cannot be linked here)", said);
      return cudaErrorNoKernelImageForDevice;
    }
    case CU_JIT_INPUT_OBJECT:
      return CB_REFUSE("CU_JIT_INPUT_OBJECT");
    case CU_JIT_INPUT_LIBRARY:
      return CB_REFUSE("CU_JIT_INPUT_LIBRARY");
    case CU_JIT_INPUT_NVVM:
      return CB_REFUSE("CU_JIT_INPUT_NVVM");
    default:
      return cudaErrorInvalidValue;
  }
}

/// Whether the image can be read and linked, without keeping it.
cudaError_t try_image(const Bytes* inputs, size_t count, uint32_t flags,
                      const JitOptions& options) {
  size_t bytes = 0;
  void* image = join_containers(inputs, count, flags, &bytes);
  Module* module = create_module_around(image, bytes);
  if (module == nullptr) return cudaErrorMemoryAllocation;
  cudaError_t error = load_module_with(module, options);
  destroy_module(module);
  return error;
}

}  // namespace

cudaError_t create_link(void** handle, const JitOptions& options) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  LinkState* link = links.create(handle);
  if (link == nullptr) return cudaErrorMemoryAllocation;
  link->options = options;
  return cudaSuccess;
}

cudaError_t add_link_input(void* handle, int type, const void* data, size_t bytes,
                           const JitOptions& options) {
  LinkState* link = links.find(handle);
  if (link == nullptr) return cudaErrorInvalidResourceHandle;
  if (data == nullptr || bytes == 0 || bytes > kMaxFatbinBytes) return cudaErrorInvalidValue;
  if (link->image != nullptr) return cudaErrorInvalidValue;
  cudaError_t error = check_type(type);
  if (error != cudaSuccess) return error;
  Bytes input = container_of(type, data, bytes);
  if (input.data == nullptr) {
    write_jit_log(link->options.error, type == CU_JIT_INPUT_PTX
                                           ? "ptx:1: the text does not begin with .version"
                                           : "the data is no fat binary");
    return type == CU_JIT_INPUT_PTX ? cudaErrorInvalidPtx : cudaErrorInvalidKernelImage;
  }
  // Problems of this input go to the log of the link, as those of the link itself do.
  JitOptions with_logs = options;
  with_logs.info = link->options.info;
  with_logs.error = link->options.error;
  error = try_image(&input, 1, kLinkIncomplete, with_logs);
  if (error != cudaSuccess || !link->inputs.push(input)) {
    free(const_cast<void*>(input.data));
    return error == cudaSuccess ? cudaErrorMemoryAllocation : error;
  }
  return cudaSuccess;
}

cudaError_t add_link_file(void* handle, int type, const char* path, const JitOptions& options) {
  if (path == nullptr) return cudaErrorInvalidValue;
  size_t bytes = 0;
  char* data = read_image_file(path, &bytes);
  if (data == nullptr) return cudaErrorFileNotFound;
  cudaError_t error = add_link_input(handle, type, data, bytes, options);
  free(data);
  return error;
}

cudaError_t complete_link(void* handle, void** image, size_t* bytes) {
  LinkState* link = links.find(handle);
  if (link == nullptr) return cudaErrorInvalidResourceHandle;
  if (image == nullptr || bytes == nullptr) return cudaErrorInvalidValue;
  if (link->inputs.size() == 0 || link->image != nullptr) return cudaErrorInvalidValue;
  const Bytes* inputs = &link->inputs[0];
  cudaError_t error = try_image(inputs, link->inputs.size(), 0, link->options);
  if (error != cudaSuccess) return error;
  link->image = join_containers(inputs, link->inputs.size(), 0, bytes);
  if (link->image == nullptr) return cudaErrorMemoryAllocation;
  *image = link->image;
  return cudaSuccess;
}

cudaError_t destroy_link(void* handle) {
  LinkState* link = links.find(handle);
  if (link == nullptr) return cudaErrorInvalidResourceHandle;
  for (size_t at = 0; at < link->inputs.size(); ++at) {
    free(const_cast<void*>(link->inputs[at].data));
  }
  link->inputs.release();
  free(link->image);
  links.destroy(handle);
  return cudaSuccess;
}

}  // namespace cb::sim::client
