#include "simulator/shims/client/events.h"

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/handles.h"
#include "simulator/shims/client/process.h"

namespace cb::sim::client {
namespace {

HandleTable<Event, 1 << 20> events;

constexpr double kPicosecondsPerMillisecond = 1e9;

}  // namespace

Event* find_event(cudaEvent_t handle) { return events.find(handle); }

Event* new_event(cudaEvent_t* handle, unsigned flags) {
  void* created;
  Event* event = events.create(&created);
  if (event == nullptr) return nullptr;
  event->id = new_id();
  event->device = this_thread().device();
  event->flags = flags;
  *handle = static_cast<cudaEvent_t>(created);
  return event;
}

void drop_event(cudaEvent_t handle) { events.destroy(handle); }

cudaError_t create_event(cudaEvent_t* handle, unsigned flags) {
  constexpr unsigned kFlags =
      cudaEventBlockingSync | cudaEventDisableTiming | cudaEventInterprocess;
  if (handle == nullptr || (flags & ~kFlags) != 0) return cudaErrorInvalidValue;
  if ((flags & cudaEventInterprocess) != 0 && (flags & cudaEventDisableTiming) == 0) {
    return cudaErrorInvalidValue;
  }
  Event* event = new_event(handle, flags);
  if (event == nullptr) return cudaErrorMemoryAllocation;
  return Call(Op::kEventCreate).args(event->id, flags, event->device).send();
}

cudaError_t destroy_event(cudaEvent_t handle) {
  Event* event = events.find(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  uint64_t id = event->id;
  if (!events.destroy(handle)) return cudaErrorInvalidResourceHandle;
  return Call(Op::kEventDestroy).args(id).send();
}

cudaError_t record_event(cudaEvent_t handle, cudaStream_t stream_handle, unsigned flags,
                         DefaultStream null_means) {
  if ((flags & ~unsigned{cudaEventRecordExternal}) != 0) return cudaErrorInvalidValue;
  Event* event = events.find(handle);
  Stream stream;
  if (event == nullptr || !find_stream(stream_handle, null_means, &stream) ||
      stream.device != event->device) {
    return cudaErrorInvalidResourceHandle;
  }
  cudaError_t error = cudaSuccess;
  if (capture_record(stream, *event, &error) != Captured::kNo) return error;
  event->recorded = true;
  return Call(Op::kEventRecord).args(event->id, stream.id, stream.device).send();
}

cudaError_t synchronize_event(cudaEvent_t handle) {
  Event* event = events.find(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->captured) return cudaErrorCapturedEvent;
  if (!event->recorded && !event->imported) return cudaSuccess;
  return Call(Op::kEventSync).args(event->id).on(event->device).wait();
}

cudaError_t query_event(cudaEvent_t handle) {
  Event* event = events.find(handle);
  if (event == nullptr) return cudaErrorInvalidResourceHandle;
  if (event->captured) return cudaErrorCapturedEvent;
  if (!event->recorded && !event->imported) return cudaSuccess;
  return Call(Op::kEventQuery).args(event->id).on(event->device).wait();
}

cudaError_t elapsed_ms(float* milliseconds, cudaEvent_t start_handle, cudaEvent_t end_handle) {
  if (milliseconds == nullptr) return cudaErrorInvalidValue;
  Event* start = events.find(start_handle);
  Event* end = events.find(end_handle);
  if (start == nullptr || end == nullptr || !start->recorded || !end->recorded ||
      ((start->flags | end->flags) & cudaEventDisableTiming) != 0 || start->device != end->device) {
    return cudaErrorInvalidResourceHandle;
  }
  Call call(Op::kEventElapsed);
  call.args(start->id, end->id);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  auto picoseconds = static_cast<int64_t>(call.result(0));
  *milliseconds = static_cast<float>(static_cast<double>(picoseconds) / kPicosecondsPerMillisecond);
  return cudaSuccess;
}

void remove_events_of(int device) {
  events.for_each([device](void* handle, Event& event) {
    if (event.device == device) events.destroy(handle);
  });
}

}  // namespace cb::sim::client
