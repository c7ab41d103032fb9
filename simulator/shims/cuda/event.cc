#include "simulator/shims/client/events.h"

#include "simulator/shims/cuda/driver.h"

// The header maps the plain name to the newest version; both are defined here.
#undef cuEventElapsedTime

using namespace cb::sim::client;

CB_DRIVER CUresult cuEventCreate(CUevent* event, unsigned flags) {
  return context_call([&] { return create_event(event, flags); });
}

CB_DRIVER CUresult cuEventDestroy_v2(CUevent event) {
  return context_call([&] { return destroy_event(event); });
}

CB_DRIVER CUresult cuEventRecord(CUevent event, CUstream stream) {
  return context_call([&] { return record_event(event, stream, 0, DefaultStream::kLegacy); });
}
CB_DRIVER CUresult cuEventRecord_ptsz(CUevent event, CUstream stream) {
  return context_call([&] { return record_event(event, stream, 0, DefaultStream::kPerThread); });
}

CB_DRIVER CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned flags) {
  return context_call([&] { return record_event(event, stream, flags, DefaultStream::kLegacy); });
}
CB_DRIVER CUresult cuEventRecordWithFlags_ptsz(CUevent event, CUstream stream, unsigned flags) {
  return context_call(
      [&] { return record_event(event, stream, flags, DefaultStream::kPerThread); });
}

CB_DRIVER CUresult cuEventSynchronize(CUevent event) {
  return context_call([&] { return synchronize_event(event); });
}

CB_DRIVER CUresult cuEventQuery(CUevent event) {
  return context_call([&] { return query_event(event); });
}

CB_DRIVER CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  return context_call([&] { return elapsed_ms(milliseconds, start, end); });
}
CB_DRIVER CUresult cuEventElapsedTime_v2(float* milliseconds, CUevent start, CUevent end) {
  return context_call([&] { return elapsed_ms(milliseconds, start, end); });
}
