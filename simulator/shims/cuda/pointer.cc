#include "simulator/shims/client/pointers.h"

#include <cstring>

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;
using cb::sim::PointerKind;

namespace {

template <class Value>
cudaError_t store(void* data, Value value) {
  // NOLINTNEXTLINE(bugprone-sizeof-expression): the value may be a pointer
  memcpy(data, &value, sizeof value);
  return cudaSuccess;
}

/// nullptr: the memory is of no pool.
void* pool_of(CUdeviceptr address) {
  Allocation known;
  return find_allocation(address, &known) ? known.pool : nullptr;
}

/// `info` says what `address` points to. Attributes that only describe a range also answer for
/// memory that is not the simulator's, with "none".
cudaError_t get(void* data, CUpointer_attribute attribute, CUdeviceptr address,
                const PointerInfo& info) {
  bool known = info.kind != PointerKind::kUnknown;
  bool managed = info.kind == PointerKind::kManaged;
  // Managed memory counts as the device's, with a host pointer besides.
  bool device = info.kind == PointerKind::kDevice || managed;
  switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
      return known ? store(data, context_of(info.device)) : cudaErrorInvalidValue;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
      if (!known) return cudaErrorInvalidValue;
      return store(data, static_cast<unsigned>(device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
      return known ? store(data, address) : cudaErrorInvalidValue;
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
      return known && (!device || managed) ? store(data, to_pointer(address))
                                           : cudaErrorInvalidValue;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL:
      return store(data, known ? info.device : -2);
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
      return store(data, static_cast<unsigned>(info.kind == PointerKind::kManaged));
    case CU_POINTER_ATTRIBUTE_MAPPED:
      return store(data, static_cast<unsigned>(known));
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
      return store(data, static_cast<unsigned>((info.flags & cb::sim::kPointerLegacyIpc) != 0));
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
      return store(data, static_cast<unsigned>(device));
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
      return known ? store(data, CUdeviceptr{info.base}) : cudaErrorInvalidValue;
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
      return known ? store(data, size_t{info.bytes}) : cudaErrorInvalidValue;
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
      return store(data, info.flags & cb::sim::kPointerHandleTypes);
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
      return store(data, static_cast<unsigned>(known ? CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE
                                                     : CU_POINTER_ATTRIBUTE_ACCESS_FLAG_NONE));
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
      return store(data, pool_of(address));
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
      // Addresses are not used again while an allocation lives, which makes its base an identity.
      return known ? store(data, static_cast<unsigned long long>(info.base))
                   : cudaErrorInvalidValue;
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
      return known ? store(data, static_cast<unsigned>(has_sync_memops(address)))
                   : cudaErrorInvalidValue;
    case CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE:
      return store(data, 0u);
    case CU_POINTER_ATTRIBUTE_P2P_TOKENS:
      return CB_REFUSE("CU_POINTER_ATTRIBUTE_P2P_TOKENS");
  }
  return cudaErrorInvalidValue;
}

}  // namespace

CB_DRIVER CUresult cuPointerGetAttribute(void* data, CUpointer_attribute attribute,
                                         CUdeviceptr address) {
  return driver_call([&] {
    if (data == nullptr) return cudaErrorInvalidValue;
    PointerInfo info;
    cudaError_t error = pointer_info(address, &info);
    return error == cudaSuccess ? get(data, attribute, address, info) : error;
  });
}

/// An attribute that means nothing for this address is set to zero, without an error.
CB_DRIVER CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute* attributes,
                                          void** data, CUdeviceptr address) {
  return driver_call([&] {
    if (attributes == nullptr || data == nullptr) return cudaErrorInvalidValue;
    PointerInfo info;
    cudaError_t error = pointer_info(address, &info);
    for (unsigned at = 0; at < count && error == cudaSuccess; ++at) {
      cudaError_t its_error = get(data[at], attributes[at], address, info);
      if (its_error == cudaErrorNotSupported) return its_error;
      if (its_error == cudaSuccess) continue;
      switch (attributes[at]) {
        case CU_POINTER_ATTRIBUTE_MEMORY_TYPE:
        case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS:
          store(data[at], 0u);
          break;
        default:
          store(data[at], uint64_t{0});
      }
    }
    return error;
  });
}

CB_DRIVER CUresult cuPointerSetAttribute(const void* value, CUpointer_attribute attribute,
                                         CUdeviceptr address) {
  return driver_call([&] {
    if (value == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
      return cudaErrorInvalidValue;
    }
    unsigned wanted;
    memcpy(&wanted, value, sizeof wanted);
    return set_sync_memops(address, wanted != 0) ? cudaSuccess : cudaErrorInvalidValue;
  });
}
