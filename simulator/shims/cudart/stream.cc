#include "simulator/shims/client/streams.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

/// Looks a stream up and stores one of its fields.
template <class Field>
cudaError_t get(cudaStream_t handle, DefaultStream null_means, Field* result,
                Field (*field)(const Stream&)) {
  return api([&] {
    Stream stream;
    if (result == nullptr) return cudaErrorInvalidValue;
    if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
    *result = field(stream);
    return cudaSuccess;
  });
}

int priority_of(const Stream& stream) { return stream.priority; }
unsigned flags_of(const Stream& stream) { return stream.flags; }
int device_of(const Stream& stream) { return stream.device; }
unsigned long long id_of(const Stream& stream) { return stream.id; }

}  // namespace

CB_API cudaError_t cudaStreamCreate(cudaStream_t* stream) {
  return api([&] { return create_stream(stream, cudaStreamDefault, kLeastPriority); });
}

CB_API cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags) {
  return api([&] { return create_stream(stream, flags, kLeastPriority); });
}

CB_API cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned flags,
                                                int priority) {
  return api([&] { return create_stream(stream, flags, priority); });
}

CB_API cudaError_t cudaStreamDestroy(cudaStream_t stream) {
  return api([&] { return destroy_stream(stream); });
}

CB_API cudaError_t cudaStreamSynchronize(cudaStream_t stream) {
  return api([&] { return synchronize_stream(stream, kLegacy); });
}
CB_API cudaError_t cudaStreamSynchronize_ptsz(cudaStream_t stream) {
  return api([&] { return synchronize_stream(stream, kPerThread); });
}

CB_API cudaError_t cudaStreamQuery(cudaStream_t stream) {
  return api([&] { return query_stream(stream, kLegacy); });
}
CB_API cudaError_t cudaStreamQuery_ptsz(cudaStream_t stream) {
  return api([&] { return query_stream(stream, kPerThread); });
}

CB_API cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags) {
  return api([&] { return wait_for_event(stream, event, flags, kLegacy); });
}
CB_API cudaError_t cudaStreamWaitEvent_ptsz(cudaStream_t stream, cudaEvent_t event,
                                            unsigned flags) {
  return api([&] { return wait_for_event(stream, event, flags, kPerThread); });
}

CB_API cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority) {
  return get(stream, kLegacy, priority, priority_of);
}
CB_API cudaError_t cudaStreamGetPriority_ptsz(cudaStream_t stream, int* priority) {
  return get(stream, kPerThread, priority, priority_of);
}

CB_API cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned* flags) {
  return get(stream, kLegacy, flags, flags_of);
}
CB_API cudaError_t cudaStreamGetFlags_ptsz(cudaStream_t stream, unsigned* flags) {
  return get(stream, kPerThread, flags, flags_of);
}

CB_API cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id) {
  return get(stream, kLegacy, id, id_of);
}
CB_API cudaError_t cudaStreamGetId_ptsz(cudaStream_t stream, unsigned long long* id) {
  return get(stream, kPerThread, id, id_of);
}

CB_API cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device) {
  return get(stream, kLegacy, device, device_of);
}
CB_API cudaError_t cudaStreamGetDevice_ptsz(cudaStream_t stream, int* device) {
  return get(stream, kPerThread, device, device_of);
}
