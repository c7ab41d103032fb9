#include "simulator/shims/client/host_functions.h"

#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

using Callback = void(void*, int, void*);

CUresult add(CUstream stream, CUstreamCallback callback, void* data, unsigned flags,
             DefaultStream null_means) {
  // An enumeration is passed as the integer that it is; errors of contexts have the same numbers in
  // both APIs.
  auto* plain = reinterpret_cast<Callback*>(callback);
  return context_call([&] { return add_callback(stream, plain, data, flags, null_means); });
}

}  // namespace

CB_DRIVER CUresult cuLaunchHostFunc(CUstream stream, CUhostFn function, void* data) {
  return context_call([&] { return launch_host_function(stream, function, data, kLegacy); });
}
CB_DRIVER CUresult cuLaunchHostFunc_ptsz(CUstream stream, CUhostFn function, void* data) {
  return context_call([&] { return launch_host_function(stream, function, data, kPerThread); });
}

CB_DRIVER CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback callback, void* data,
                                       unsigned flags) {
  return add(stream, callback, data, flags, kLegacy);
}
CB_DRIVER CUresult cuStreamAddCallback_ptsz(CUstream stream, CUstreamCallback callback, void* data,
                                            unsigned flags) {
  return add(stream, callback, data, flags, kPerThread);
}
