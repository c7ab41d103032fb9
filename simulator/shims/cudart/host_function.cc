#include "simulator/shims/client/host_functions.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

using Callback = void(void*, int, void*);

cudaError_t add(cudaStream_t stream, cudaStreamCallback_t callback, void* data, unsigned flags,
                DefaultStream null_means) {
  // An enumeration is passed as the integer that it is.
  auto* plain = reinterpret_cast<Callback*>(callback);
  return api([&] { return add_callback(stream, plain, data, flags, null_means); });
}

}  // namespace

CB_API cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return api([&] { return launch_host_function(stream, function, data, kLegacy); });
}
CB_API cudaError_t cudaLaunchHostFunc_ptsz(cudaStream_t stream, cudaHostFn_t function, void* data) {
  return api([&] { return launch_host_function(stream, function, data, kPerThread); });
}

CB_API cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback,
                                         void* data, unsigned flags) {
  return add(stream, callback, data, flags, kLegacy);
}
CB_API cudaError_t cudaStreamAddCallback_ptsz(cudaStream_t stream, cudaStreamCallback_t callback,
                                              void* data, unsigned flags) {
  return add(stream, callback, data, flags, kPerThread);
}
