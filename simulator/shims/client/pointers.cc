#include "simulator/shims/client/pointers.h"

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/registrations.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {

cudaError_t pointer_info(uint64_t address, PointerInfo* info) {
  *info = PointerInfo();
  if (!in_window(address)) return cudaSuccess;
  Call call(Op::kPointerInfo);
  call.args(address);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  info->kind = static_cast<PointerKind>(call.result(0));
  info->device = static_cast<int>(call.result(1));
  info->base = call.result(2);
  info->bytes = call.result(3);
  info->flags = call.result(4);
  return cudaSuccess;
}

cudaError_t pointer_attributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (attributes == nullptr) return cudaErrorInvalidValue;
  PointerInfo info;
  cudaError_t error = pointer_info(reinterpret_cast<uint64_t>(pointer), &info);
  if (error != cudaSuccess) return error;
  *attributes = cudaPointerAttributes();
  Registration registered;
  auto address = reinterpret_cast<uint64_t>(pointer);
  if (find_registration(pointer, &registered)) {
    attributes->type = cudaMemoryTypeHost;
    attributes->device = registered.device;
    attributes->devicePointer = reinterpret_cast<void*>(registered.alias_of(address));
    attributes->hostPointer = const_cast<void*>(pointer);
    return cudaSuccess;
  }
  void* alias = const_cast<void*>(pointer);
  switch (info.kind) {
    case PointerKind::kUnknown:
      attributes->type = cudaMemoryTypeUnregistered;
      attributes->device = cudaInvalidDeviceId;
      attributes->hostPointer = alias;
      break;
    case PointerKind::kDevice:
      attributes->type = cudaMemoryTypeDevice;
      attributes->device = info.device;
      attributes->devicePointer = alias;
      break;
    case PointerKind::kManaged:
      attributes->type = cudaMemoryTypeManaged;
      attributes->device = info.device;
      attributes->devicePointer = alias;
      attributes->hostPointer = alias;
      break;
    case PointerKind::kPinned:
      attributes->type = cudaMemoryTypeHost;
      attributes->device = info.device;
      attributes->devicePointer = alias;
      attributes->hostPointer = alias;
      if (find_registration_of_alias(address, &registered)) {
        attributes->hostPointer =
            reinterpret_cast<void*>(registered.host + (address - registered.alias));
      }
      break;
  }
  return cudaSuccess;
}

}  // namespace cb::sim::client
