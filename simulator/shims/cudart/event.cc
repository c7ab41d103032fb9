#include "simulator/shims/client/events.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

CB_API cudaError_t cudaEventCreate(cudaEvent_t* event) {
  return api([&] { return create_event(event, cudaEventDefault); });
}

CB_API cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags) {
  return api([&] { return create_event(event, flags); });
}

CB_API cudaError_t cudaEventDestroy(cudaEvent_t event) {
  return api([&] { return destroy_event(event); });
}

CB_API cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream) {
  return api(
      [&] { return record_event(event, stream, cudaEventRecordDefault, DefaultStream::kLegacy); });
}
CB_API cudaError_t cudaEventRecord_ptsz(cudaEvent_t event, cudaStream_t stream) {
  return api([&] {
    return record_event(event, stream, cudaEventRecordDefault, DefaultStream::kPerThread);
  });
}

CB_API cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                            unsigned flags) {
  return api([&] { return record_event(event, stream, flags, DefaultStream::kLegacy); });
}
CB_API cudaError_t cudaEventRecordWithFlags_ptsz(cudaEvent_t event, cudaStream_t stream,
                                                 unsigned flags) {
  return api([&] { return record_event(event, stream, flags, DefaultStream::kPerThread); });
}

CB_API cudaError_t cudaEventSynchronize(cudaEvent_t event) {
  return api([&] { return synchronize_event(event); });
}

CB_API cudaError_t cudaEventQuery(cudaEvent_t event) {
  return api([&] { return query_event(event); });
}

CB_API cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end) {
  return api([&] { return elapsed_ms(milliseconds, start, end); });
}
