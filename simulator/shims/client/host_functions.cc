#include "simulator/shims/client/host_functions.h"

#include <pthread.h>
#include <csignal>
#include <cstdlib>
#include <new>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/capture.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/client/thread.h"

namespace cb::sim::client {
namespace {

Mutex mutex;
bool is_started = false;

void run(const HostFunction& function, int error) {
  Thread& thread = this_thread();
  thread.in_host_function = true;
  if (function.function != nullptr) {
    function.function(function.data);
  } else {
    function.callback(function.stream, error, function.data);
  }
  thread.in_host_function = false;
}

/// Until the process says goodbye.
void* serve(void*) {
  for (;;) {
    Call call(Op::kHostFunctionNext);
    if (!call.wait_raw() || call.status() != cudaSuccess) return nullptr;
    auto* next = reinterpret_cast<HostFunction*>(call.result(0));
    if (next == nullptr) continue;
    HostFunction function = *next;
    free(next);
    run(function, static_cast<int>(call.result(1)));
  }
}

/// The program's signals are not for this thread. pthread_create is simhost's, which gives the
/// thread a connection and a clock.
cudaError_t start_thread() {
  LockAcrossCalls lock(mutex);
  if (is_started) return cudaSuccess;
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread;
  is_started = pthread_create(&thread, &attributes, serve, nullptr) == 0;
  pthread_attr_destroy(&attributes);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return is_started ? cudaSuccess : cudaErrorSystemNotReady;
}

}  // namespace

cudaError_t send_host_function(uint64_t stream, int device, const HostFunction& function,
                               uint16_t flags) {
  cudaError_t error = start_thread();
  if (error != cudaSuccess) return error;
  void* memory = malloc(sizeof(HostFunction));
  if (memory == nullptr) return cudaErrorMemoryAllocation;
  auto* token = new (memory) HostFunction(function);
  error = Call(Op::kHostFunction, flags)
              .args(stream, device, reinterpret_cast<uint64_t>(token),
                    function.callback != nullptr ? 1 : 0)
              .send();
  if (error != cudaSuccess) free(memory);
  return error;
}

cudaError_t launch_host_function(cudaStream_t handle, cudaHostFn_t function, void* data,
                                 DefaultStream null_means) {
  Stream stream;
  if (function == nullptr) return cudaErrorInvalidValue;
  if (!find_stream(handle, null_means, &stream)) return cudaErrorInvalidResourceHandle;
  cudaError_t error = refuse_in_capture(stream);
  if (error == cudaErrorStreamCaptureUnsupported) {
    report("cudaLaunchHostFunc: host nodes of graphs are not supported");
  }
  if (error != cudaSuccess) return error;
  HostFunction host;
  host.function = function;
  host.data = data;
  return send_host_function(stream.id, stream.device, host, 0);
}

cudaError_t add_callback(void* handle, void (*callback)(void* stream, int error, void* data),
                         void* data, unsigned flags, DefaultStream null_means) {
  Stream stream;
  if (callback == nullptr || flags != 0) return cudaErrorInvalidValue;
  if (!find_stream(static_cast<cudaStream_t>(handle), null_means, &stream)) {
    return cudaErrorInvalidResourceHandle;
  }
  // CUDA has no such node: hardware refuses it as well.
  cudaError_t error = refuse_in_capture(stream);
  if (error != cudaSuccess) return error;
  HostFunction host;
  host.callback = callback;
  host.stream = handle;
  host.data = data;
  return send_host_function(stream.id, stream.device, host, 0);
}

}  // namespace cb::sim::client
