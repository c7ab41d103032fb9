#include "simulator/shims/client/streams.h"

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/events.h"
#include "simulator/shims/client/handles.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {
namespace {

HandleTable<Stream, 1 << 16> streams;

}  // namespace

bool find_stream(cudaStream_t handle, DefaultStream null_means, Stream* found) {
  if (handle == nullptr || handle == cudaStreamLegacy || handle == cudaStreamPerThread) {
    bool per_thread = handle == cudaStreamPerThread ||
                      (handle == nullptr && null_means == DefaultStream::kPerThread);
    *found = Stream();
    found->id = per_thread ? kPerThreadStream : kNullStream;
    found->device = this_thread().device();
    return true;
  }
  Stream* stream = streams.find(handle);
  if (stream == nullptr) return false;
  *found = *stream;
  return true;
}

Stream* stream_slot(cudaStream_t handle, DefaultStream null_means) {
  static Stream defaults[2][kMaxDevices];
  Stream found;
  if (!find_stream(handle, null_means, &found)) return nullptr;
  if (found.id != kNullStream && found.id != kPerThreadStream) return streams.find(handle);
  Stream& slot = defaults[found.id == kPerThreadStream ? 1 : 0][found.device];
  slot.id = found.id;
  slot.device = found.device;
  return &slot;
}

cudaError_t create_stream(cudaStream_t* handle, unsigned flags, int priority) {
  if (handle == nullptr || (flags & ~unsigned{cudaStreamNonBlocking}) != 0) {
    return cudaErrorInvalidValue;
  }
  void* created;
  Stream* stream = streams.create(&created);
  if (stream == nullptr) return cudaErrorMemoryAllocation;
  stream->id = new_id();
  stream->device = this_thread().device();
  stream->flags = flags;
  stream->priority = priority > kLeastPriority      ? kLeastPriority
                     : priority < kGreatestPriority ? kGreatestPriority
                                                    : priority;
  *handle = static_cast<cudaStream_t>(created);
  return Call(Op::kStreamCreate)
      .args(stream->id, flags, static_cast<int64_t>(stream->priority), stream->device)
      .send();
}

cudaError_t destroy_stream(cudaStream_t handle) {
  Stream* stream = streams.find(handle);
  if (stream == nullptr) return cudaErrorInvalidResourceHandle;
  uint64_t id = stream->id;
  if (!streams.destroy(handle)) return cudaErrorInvalidResourceHandle;
  return Call(Op::kStreamDestroy).args(id).send();
}

cudaError_t synchronize_stream(cudaStream_t handle, DefaultStream null_means) {
  Stream stream;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = refuse_in_capture(stream);
  if (error != cudaSuccess) return error;
  return Call(Op::kStreamSync).args(stream.id, stream.device).on(stream.device).wait();
}

cudaError_t query_stream(cudaStream_t handle, DefaultStream null_means) {
  Stream stream;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = refuse_in_capture(stream);
  if (error != cudaSuccess) return error;
  return Call(Op::kStreamQuery).args(stream.id, stream.device).on(stream.device).wait();
}

cudaError_t wait_for_event(cudaStream_t handle, cudaEvent_t event_handle, unsigned flags,
                           DefaultStream null_means) {
  // cudaEventWaitExternal only means something during capture.
  if ((flags & ~unsigned{cudaEventWaitExternal}) != 0) return cudaErrorInvalidValue;
  Stream stream;
  Event* event = find_event(event_handle);
  if (event == nullptr || !find_stream(handle, null_means, &stream)) {
    return cudaErrorInvalidResourceHandle;
  }
  cudaError_t error = cudaSuccess;
  if (capture_wait(stream, *event, &error) != Captured::kNo) return error;
  return Call(Op::kStreamWait).args(stream.id, stream.device, event->id).send();
}

void remove_streams_of(int device) {
  streams.for_each([device](void* handle, Stream& stream) {
    if (stream.device == device) streams.destroy(handle);
  });
}

}  // namespace cb::sim::client
