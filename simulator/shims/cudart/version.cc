#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

CB_API cudaError_t cudaDriverGetVersion(int* version) {
  if (version == nullptr) return record(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

CB_API cudaError_t cudaRuntimeGetVersion(int* version) {
  if (version == nullptr) return record(cudaErrorInvalidValue);
  *version = CUDART_VERSION;
  return cudaSuccess;
}

// There is no profiler to start or stop, as on hardware when none is attached.
CB_API cudaError_t cudaProfilerStart() {
  return query([] { return cudaSuccess; });
}

CB_API cudaError_t cudaProfilerStop() {
  return query([] { return cudaSuccess; });
}

CB_API cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w,
                                                   cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
