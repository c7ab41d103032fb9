#include "simulator/shims/client/streams.h"

#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

/// Looks a stream up and gives it to `body`, which stores something in `result`.
template <class Result, class Body>
CUresult about_stream(CUstream handle, DefaultStream null_means, Result* result, Body body) {
  return context_call([&] {
    Stream stream;
    if (result == nullptr) return cudaErrorInvalidValue;
    if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
    *result = body(stream);
    return cudaSuccess;
  });
}

int priority_of(const Stream& stream) { return stream.priority; }
unsigned flags_of(const Stream& stream) { return stream.flags; }
CUdevice device_of_stream(const Stream& stream) { return stream.device; }
unsigned long long id_of(const Stream& stream) { return stream.id; }
CUcontext context_of_stream(const Stream& stream) { return context_of(stream.device); }

}  // namespace

CB_DRIVER CUresult cuStreamCreate(CUstream* stream, unsigned flags) {
  return context_call([&] { return create_stream(stream, flags, kLeastPriority); });
}

CB_DRIVER CUresult cuStreamCreateWithPriority(CUstream* stream, unsigned flags, int priority) {
  return context_call([&] { return create_stream(stream, flags, priority); });
}

CB_DRIVER CUresult cuStreamDestroy_v2(CUstream stream) {
  return context_call([&] { return destroy_stream(stream); });
}

CB_DRIVER CUresult cuStreamSynchronize(CUstream stream) {
  return context_call([&] { return synchronize_stream(stream, kLegacy); });
}
CB_DRIVER CUresult cuStreamSynchronize_ptsz(CUstream stream) {
  return context_call([&] { return synchronize_stream(stream, kPerThread); });
}

CB_DRIVER CUresult cuStreamQuery(CUstream stream) {
  return context_call([&] { return query_stream(stream, kLegacy); });
}
CB_DRIVER CUresult cuStreamQuery_ptsz(CUstream stream) {
  return context_call([&] { return query_stream(stream, kPerThread); });
}

CB_DRIVER CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned flags) {
  return context_call([&] { return wait_for_event(stream, event, flags, kLegacy); });
}
CB_DRIVER CUresult cuStreamWaitEvent_ptsz(CUstream stream, CUevent event, unsigned flags) {
  return context_call([&] { return wait_for_event(stream, event, flags, kPerThread); });
}

CB_DRIVER CUresult cuStreamGetPriority(CUstream stream, int* priority) {
  return about_stream(stream, kLegacy, priority, priority_of);
}
CB_DRIVER CUresult cuStreamGetPriority_ptsz(CUstream stream, int* priority) {
  return about_stream(stream, kPerThread, priority, priority_of);
}

CB_DRIVER CUresult cuStreamGetFlags(CUstream stream, unsigned* flags) {
  return about_stream(stream, kLegacy, flags, flags_of);
}
CB_DRIVER CUresult cuStreamGetFlags_ptsz(CUstream stream, unsigned* flags) {
  return about_stream(stream, kPerThread, flags, flags_of);
}

CB_DRIVER CUresult cuStreamGetId(CUstream stream, unsigned long long* id) {
  return about_stream(stream, kLegacy, id, id_of);
}
CB_DRIVER CUresult cuStreamGetId_ptsz(CUstream stream, unsigned long long* id) {
  return about_stream(stream, kPerThread, id, id_of);
}

CB_DRIVER CUresult cuStreamGetDevice(CUstream stream, CUdevice* device) {
  return about_stream(stream, kLegacy, device, device_of_stream);
}
CB_DRIVER CUresult cuStreamGetDevice_ptsz(CUstream stream, CUdevice* device) {
  return about_stream(stream, kPerThread, device, device_of_stream);
}

CB_DRIVER CUresult cuStreamGetCtx(CUstream stream, CUcontext* context) {
  return about_stream(stream, kLegacy, context, context_of_stream);
}
CB_DRIVER CUresult cuStreamGetCtx_ptsz(CUstream stream, CUcontext* context) {
  return about_stream(stream, kPerThread, context, context_of_stream);
}

CB_DRIVER CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode* mode) {
  return driver_call([&] {
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
      return cudaErrorInvalidValue;
    }
    cudaStreamCaptureMode previous = this_thread().capture_mode;
    this_thread().capture_mode = static_cast<cudaStreamCaptureMode>(*mode);
    *mode = static_cast<CUstreamCaptureMode>(previous);
    return cudaSuccess;
  });
}
