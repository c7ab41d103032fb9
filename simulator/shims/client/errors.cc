#include "simulator/shims/client/errors.h"

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/report.h"

namespace cb::sim::client {

cudaError_t begin() {
  cudaError_t error = link_error();
  if (error != cudaSuccess) return error;
  if (this_thread().in_host_function) return cudaErrorNotPermitted;
  process.driver_initialized.store(true, std::memory_order_relaxed);
  Thread& thread = this_thread();
  // The runtime API makes the primary context current when it needs one.
  if (!thread.has_context()) thread.set_device(0);
  return static_cast<cudaError_t>(process.sticky[thread.device()].load(std::memory_order_relaxed));
}

cudaError_t record(cudaError_t error) {
  if (error != cudaSuccess) this_thread().last_error = error;
  return error;
}

cudaError_t last_error(bool take) {
  Thread& thread = this_thread();
  if (process.link.load() == Link::kLost) return cudaErrorSystemNotReady;
  int sticky = process.sticky[thread.device()].load(std::memory_order_relaxed);
  if (sticky != cudaSuccess) return static_cast<cudaError_t>(sticky);
  cudaError_t error = thread.last_error;
  if (take) thread.last_error = cudaSuccess;
  return error;
}

void report_unsupported(const char* name, bool& said) {
  if (__atomic_exchange_n(&said, true, __ATOMIC_RELAXED)) return;
  report("%s is not supported", name);
}

int refuse_runtime(const char* name, bool& said) {
  report_unsupported(name, said);
  return record(cudaErrorNotSupported);
}

int refuse_driver(const char* name, bool& said) {
  report_unsupported(name, said);
  return cudaErrorNotSupported;
}

}  // namespace cb::sim::client
