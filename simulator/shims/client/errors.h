#pragma once

// CUDA's two kinds of errors. A plain error is the calling thread's last error until
// cudaGetLastError takes it. An error that breaks a context (an illegal address, a failed launch)
// is returned by every later call on that device and cannot be cleared.

#include <cuda_runtime_api.h>

#include "simulator/shims/client/process.h"

namespace cb::sim::client {

/// What every call that needs a device finds out first: no simulator, or a broken context of the
/// current device.
cudaError_t begin();

/// Remembers `error` as the thread's last error and returns it.
cudaError_t record(cudaError_t error);

/// The thread's last error, which `take` replaces by cudaSuccess.
cudaError_t last_error(bool take);

/// The body of a runtime API function.
template <class Body>
cudaError_t api(Body body) {
  cudaError_t error = begin();
  return record(error == cudaSuccess ? body() : error);
}

/// As `api`, for functions that answer on a broken context too.
template <class Body>
cudaError_t query(Body body) {
  cudaError_t error = link_error();
  return record(error == cudaSuccess ? body() : error);
}

/// Says once on stderr that `name` is not supported. `said` is that name's own flag.
void report_unsupported(const char* name, bool& said);

/// The bodies of functions that do not exist here. The driver API (CUDA_ERROR_NOT_SUPPORTED has the
/// same number) has no last error.
int refuse_runtime(const char* name, bool& said);
int refuse_driver(const char* name, bool& said);

}  // namespace cb::sim::client

/// For an argument that is not supported: reports `what` once and gives cudaErrorNotSupported.
#define CB_REFUSE(what)                              \
  ([] {                                              \
    static bool said;                                \
    cb::sim::client::report_unsupported(what, said); \
    return cudaErrorNotSupported;                    \
  }())
