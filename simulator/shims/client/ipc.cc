#include "simulator/shims/client/ipc.h"

#include <cstring>

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/events.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {
namespace {

struct Token {
  uint64_t magic;
  uint64_t words[2];
  uint64_t bytes;  ///< of the allocation
};
constexpr uint64_t kMemoryMagic = 0x6d656d2d73696d31;
constexpr uint64_t kEventMagic = 0x6576742d73696d31;

template <class Handle>
void write_token(const Token& token, Handle* handle) {
  static_assert(sizeof token <= sizeof(Handle));
  memset(handle, 0, sizeof *handle);
  memcpy(handle, &token, sizeof token);
}

template <class Handle>
bool read_token(const Handle& handle, uint64_t magic, Token* token) {
  memcpy(token, &handle, sizeof *token);
  return token->magic == magic;
}

}  // namespace

cudaError_t export_memory(cudaIpcMemHandle_t* handle, void* pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  if (handle == nullptr || !in_window(address)) return cudaErrorInvalidValue;
  Allocation known;
  // Only memory of cudaMalloc can be exported: not pinned, imported or module memory.
  if (find_allocation(address, &known) && known.kind != AllocationKind::kDevice) {
    return cudaErrorInvalidValue;
  }
  Call call(Op::kIpcGetMem);
  call.args(address);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  write_token({kMemoryMagic, {call.result(0), call.result(1)}, known.bytes}, handle);
  return cudaSuccess;
}

cudaError_t import_memory(void** pointer, const cudaIpcMemHandle_t& handle, unsigned flags) {
  Token token;
  if (pointer == nullptr || flags != cudaIpcMemLazyEnablePeerAccess ||
      !read_token(handle, kMemoryMagic, &token)) {
    return cudaErrorInvalidValue;
  }
  int device = this_thread().device();
  Call call(Op::kIpcOpenMem);
  call.args(token.words[0], token.words[1], device);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  Allocation allocation;
  allocation.base = call.result(0);
  allocation.bytes = token.bytes;
  allocation.device = device;
  allocation.kind = AllocationKind::kImported;
  allocation.opened = 1;
  add_allocation(allocation);
  *pointer = reinterpret_cast<void*>(allocation.base);
  return cudaSuccess;
}

cudaError_t close_memory(void* pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  Allocation known;
  if (!find_allocation(address, &known) || known.base != address ||
      known.kind != AllocationKind::kImported) {
    return cudaErrorInvalidValue;
  }
  cudaError_t error = Call(Op::kIpcCloseMem).args(address).wait();
  if (error == cudaSuccess) remove_allocation(address, &known);
  return error;
}

cudaError_t export_event(cudaIpcEventHandle_t* handle, cudaEvent_t event_handle) {
  if (handle == nullptr) return cudaErrorInvalidValue;
  Event* event = find_event(event_handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if ((event->flags & cudaEventInterprocess) == 0 || event->imported) {
    return cudaErrorInvalidResourceHandle;
  }
  Call call(Op::kIpcGetEvent);
  call.args(event->id);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  write_token({kEventMagic, {call.result(0), call.result(1)}, 0}, handle);
  return cudaSuccess;
}

cudaError_t import_event(cudaEvent_t* handle, const cudaIpcEventHandle_t& ipc_handle) {
  Token token;
  if (handle == nullptr || !read_token(ipc_handle, kEventMagic, &token)) {
    return cudaErrorInvalidValue;
  }
  Event* event = new_event(handle, cudaEventDisableTiming | cudaEventInterprocess);
  if (event == nullptr) return cudaErrorMemoryAllocation;
  event->imported = true;
  cudaError_t error =
      Call(Op::kIpcOpenEvent).args(token.words[0], token.words[1], event->id, event->device).wait();
  if (error != cudaSuccess) drop_event(*handle);
  return error;
}

}  // namespace cb::sim::client
