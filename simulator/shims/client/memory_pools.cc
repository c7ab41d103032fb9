#include "simulator/shims/client/memory_pools.h"

#include <fcntl.h>
#include <cstring>

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/handles.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {
namespace {

struct Pool {
  uint64_t id = 0;
  int device = 0;
  unsigned handle_types = 0;
  bool imported = false;
};

HandleTable<Pool, 1 << 12> pools;

/// Of each device; nullptr as long as nobody asked.
Mutex mutex;
cudaMemPool_t defaults[kMaxDevices];
cudaMemPool_t current[kMaxDevices];

/// What a pointer's export says.
struct Token {
  uint64_t magic;
  uint64_t words[2];
};
constexpr uint64_t kPointerMagic = 0x706f6f6c2d73696d;
constexpr size_t kExportBytes = sizeof(cudaMemPoolPtrExportData);

cudaError_t add_pool(cudaMemPool_t* handle, const Pool& pool) {
  void* created;
  Pool* slot = pools.create(&created);
  if (slot == nullptr) {
    Call(Op::kPoolDestroy).args(pool.id).wait();
    return cudaErrorMemoryAllocation;
  }
  *slot = pool;
  *handle = static_cast<cudaMemPool_t>(created);
  return cudaSuccess;
}

cudaError_t check_handle_type(unsigned type) {
  if ((type & cudaMemHandleTypeFabric) != 0) return cudaErrorNotPermitted;
  return (type & ~unsigned{cudaMemHandleTypePosixFileDescriptor}) != 0 ? cudaErrorNotSupported
                                                                       : cudaSuccess;
}

bool is_flag(int attribute) {
  return attribute >= cudaMemPoolReuseFollowEventDependencies &&
         attribute <= cudaMemPoolReuseAllowInternalDependencies;
}

void remember(uint64_t base, size_t bytes, int device, cudaMemPool_t pool) {
  Allocation allocation;
  allocation.base = base;
  allocation.bytes = bytes;
  allocation.device = device;
  allocation.kind = AllocationKind::kPooled;
  allocation.pool = pool;
  add_allocation(allocation);
}

}  // namespace

cudaError_t check_pool_place(int location_type, int location, int allocation_type) {
  if (allocation_type == cudaMemAllocationTypeManaged) {
    return CB_REFUSE("pools of managed memory");
  }
  if (allocation_type != cudaMemAllocationTypePinned) return cudaErrorInvalidValue;
  switch (location_type) {
    case cudaMemLocationTypeDevice:
      return is_device(location) ? cudaSuccess : cudaErrorInvalidDevice;
    case cudaMemLocationTypeHost:
    case cudaMemLocationTypeHostNuma:
    case cudaMemLocationTypeHostNumaCurrent:
      return CB_REFUSE("memory pools of host memory");
    default:
      return cudaErrorInvalidValue;
  }
}

cudaError_t create_pool(cudaMemPool_t* handle, const PoolProperties& properties) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  cudaError_t error =
      check_pool_place(properties.location_type, properties.location, properties.allocation_type);
  if (error == cudaSuccess) error = check_handle_type(properties.handle_types);
  if (error != cudaSuccess) return error;
  if ((properties.usage & cudaMemPoolCreateUsageHwDecompress) != 0) {
    return CB_REFUSE("memory pools for hardware decompression");
  }
  if (properties.usage != 0) return cudaErrorInvalidValue;
  Call call(Op::kPoolCreate);
  call.args(properties.location, properties.handle_types, properties.max_bytes)
      .on(properties.location);
  error = call.wait();
  if (error != cudaSuccess) return error;
  Pool pool;
  pool.id = call.result(0);
  pool.device = properties.location;
  pool.handle_types = properties.handle_types;
  return add_pool(handle, pool);
}

cudaError_t destroy_pool(cudaMemPool_t handle) {
  Pool* pool = pools.find(handle);
  if (pool == nullptr) return cudaErrorInvalidValue;
  int device = pool->device;
  cudaError_t error = Call(Op::kPoolDestroy).args(pool->id).wait();
  if (error != cudaSuccess) return error;
  {
    Lock lock(mutex);
    if (current[device] == handle) current[device] = nullptr;
  }
  return pools.destroy(handle) ? cudaSuccess : cudaErrorInvalidValue;
}

cudaError_t default_pool(cudaMemPool_t* handle, int device) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  if (!is_device(device)) return cudaErrorInvalidDevice;
  LockAcrossCalls lock(mutex);
  if (defaults[device] == nullptr) {
    Call call(Op::kPoolDefault);
    call.args(device).on(device);
    cudaError_t error = call.wait();
    if (error != cudaSuccess) return error;
    Pool pool;
    pool.id = call.result(0);
    pool.device = device;
    error = add_pool(&defaults[device], pool);
    if (error != cudaSuccess) return error;
  }
  *handle = defaults[device];
  return cudaSuccess;
}

cudaError_t current_pool(cudaMemPool_t* handle, int device) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  if (!is_device(device)) return cudaErrorInvalidDevice;
  {
    Lock lock(mutex);
    *handle = current[device];
  }
  return *handle != nullptr ? cudaSuccess : default_pool(handle, device);
}

cudaError_t set_current_pool(int device, cudaMemPool_t handle) {
  if (!is_device(device)) return cudaErrorInvalidDevice;
  Pool* pool = pools.find(handle);
  if (pool == nullptr || pool->device != device || pool->imported) return cudaErrorInvalidValue;
  Lock lock(mutex);
  current[device] = handle;
  return cudaSuccess;
}

cudaError_t trim_pool(cudaMemPool_t handle, size_t keep) {
  Pool* pool = pools.find(handle);
  if (pool == nullptr) return cudaErrorInvalidValue;
  return Call(Op::kPoolTrim).args(pool->id, keep).wait();
}

cudaError_t get_pool_attribute(cudaMemPool_t handle, int attribute, void* value) {
  Pool* pool = pools.find(handle);
  if (pool == nullptr || value == nullptr) return cudaErrorInvalidValue;
  Call call(Op::kPoolGet);
  call.args(pool->id, attribute);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  if (is_flag(attribute)) {
    *static_cast<int*>(value) = static_cast<int>(call.result(0));
  } else {
    *static_cast<uint64_t*>(value) = call.result(0);
  }
  return cudaSuccess;
}

cudaError_t set_pool_attribute(cudaMemPool_t handle, int attribute, const void* value) {
  Pool* pool = pools.find(handle);
  if (pool == nullptr || value == nullptr) return cudaErrorInvalidValue;
  uint64_t wanted = is_flag(attribute) ? static_cast<uint64_t>(*static_cast<const int*>(value) != 0)
                                       : *static_cast<const uint64_t*>(value);
  return Call(Op::kPoolSet).args(pool->id, attribute, wanted).wait();
}

cudaError_t get_pool_access(cudaMemPool_t handle, int location_type, int location,
                            uint64_t* flags) {
  Pool* pool = pools.find(handle);
  if (pool == nullptr || location_type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
  Call call(Op::kPoolGetAccess);
  call.args(pool->id, location);
  cudaError_t error = call.wait();
  if (error == cudaSuccess) *flags = call.result(0);
  return error;
}

cudaError_t set_pool_access(cudaMemPool_t handle, int location_type, int location, uint64_t flags) {
  Pool* pool = pools.find(handle);
  if (pool == nullptr || location_type != cudaMemLocationTypeDevice) return cudaErrorInvalidValue;
  if (!is_device(location)) return cudaErrorInvalidDevice;
  return Call(Op::kPoolSetAccess).args(pool->id, location, flags).wait();
}

cudaError_t export_pool(void* shareable, cudaMemPool_t handle, unsigned handle_type,
                        unsigned long long flags) {
  Pool* pool = pools.find(handle);
  if (shareable == nullptr || pool == nullptr || flags != 0) return cudaErrorInvalidValue;
  cudaError_t error = check_handle_type(handle_type);
  if (error != cudaSuccess) return error;
  if (handle_type != cudaMemHandleTypePosixFileDescriptor) return cudaErrorInvalidValue;
  int fd;
  Call call(Op::kPoolExport);
  call.args(pool->id).receive_fds(&fd, 1);
  error = call.wait();
  if (error != cudaSuccess) return error;
  if (fd < 0) return cudaErrorUnknown;
  *static_cast<int*>(shareable) = fd;
  return cudaSuccess;
}

cudaError_t import_pool(cudaMemPool_t* handle, void* shareable, unsigned handle_type,
                        unsigned long long flags) {
  if (handle == nullptr || flags != 0) return cudaErrorInvalidValue;
  cudaError_t error = check_handle_type(handle_type);
  if (error != cudaSuccess) return error;
  // The descriptor's number is in the pointer, as CUDA wants it.
  int fd = static_cast<int>(reinterpret_cast<intptr_t>(shareable));
  if (handle_type != cudaMemHandleTypePosixFileDescriptor || fcntl(fd, F_GETFD) < 0) {
    return cudaErrorInvalidValue;
  }
  Call call(Op::kPoolImport);
  call.pass_fd(fd);
  error = call.wait();
  if (error != cudaSuccess) return error;
  Pool pool;
  pool.id = call.result(0);
  pool.device = static_cast<int>(call.result(1));
  pool.handle_types = static_cast<unsigned>(call.result(2));
  pool.imported = true;
  return add_pool(handle, pool);
}

cudaError_t export_pooled(void* data, void* pointer) {
  if (data == nullptr || !in_window(pointer)) return cudaErrorInvalidValue;
  Call call(Op::kPoolExportPointer);
  call.args(reinterpret_cast<uint64_t>(pointer));
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  Token token = {kPointerMagic, {call.result(0), call.result(1)}};
  memset(data, 0, kExportBytes);
  memcpy(data, &token, sizeof token);
  return cudaSuccess;
}

cudaError_t import_pooled(void** pointer, cudaMemPool_t handle, const void* data) {
  Pool* pool = pools.find(handle);
  if (pointer == nullptr || pool == nullptr || data == nullptr) return cudaErrorInvalidValue;
  Token token;
  memcpy(&token, data, sizeof token);
  if (token.magic != kPointerMagic) return cudaErrorInvalidValue;
  Call call(Op::kPoolImportPointer);
  call.args(pool->id, token.words[0], token.words[1]);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  remember(call.result(0), call.result(1), pool->device, handle);
  *pointer = reinterpret_cast<void*>(call.result(0));
  return cudaSuccess;
}

cudaError_t allocate_async(void** pointer, size_t bytes, cudaMemPool_t handle,
                           cudaStream_t stream_handle, DefaultStream null_means) {
  if (pointer == nullptr) return cudaErrorInvalidValue;
  Stream stream;
  if (!find_stream(stream_handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = refuse_in_capture(stream);
  if (error == cudaErrorStreamCaptureUnsupported) {
    report("cudaMallocAsync cannot be captured: memory nodes of graphs are not supported");
  }
  if (error != cudaSuccess) return error;
  if (handle == nullptr) error = current_pool(&handle, stream.device);
  if (error != cudaSuccess) return error;
  Pool* pool = pools.find(handle);
  if (pool == nullptr) return cudaErrorInvalidValue;
  int device = pool->device;
  Call call(Op::kMallocAsync);
  call.args(bytes, stream.id, stream.device, pool->id).on(stream.device);
  error = call.wait();
  if (error != cudaSuccess) return error;
  remember(call.result(0), bytes, device, handle);
  *pointer = reinterpret_cast<void*>(call.result(0));
  return cudaSuccess;
}

cudaError_t free_async(void* pointer, cudaStream_t stream_handle, DefaultStream null_means) {
  Stream stream;
  if (!find_stream(stream_handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  if (!in_window(pointer)) return cudaErrorInvalidValue;
  cudaError_t error = refuse_in_capture(stream);
  if (error == cudaErrorStreamCaptureUnsupported) {
    report("cudaFreeAsync cannot be captured: memory nodes of graphs are not supported");
  }
  if (error != cudaSuccess) return error;
  auto address = reinterpret_cast<uint64_t>(pointer);
  error = Call(Op::kFreeAsync).args(address, stream.id, stream.device).on(stream.device).wait();
  Allocation known;
  if (error == cudaSuccess) remove_allocation(address, &known);
  return error;
}

void remove_pools_of(int device) {
  pools.for_each([device](void* handle, Pool& pool) {
    if (pool.device == device) pools.destroy(handle);
  });
  Lock lock(mutex);
  defaults[device] = current[device] = nullptr;
}

}  // namespace cb::sim::client
