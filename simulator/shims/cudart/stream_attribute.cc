#include "simulator/shims/client/stream_attributes.h"

#include "simulator/shims/cudart/api.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

}  // namespace

CB_API cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                          const cudaLaunchAttributeValue* value) {
  return api([&] { return set_stream_attribute(stream, attribute, value, kLegacy); });
}
CB_API cudaError_t cudaStreamSetAttribute_ptsz(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                               const cudaLaunchAttributeValue* value) {
  return api([&] { return set_stream_attribute(stream, attribute, value, kPerThread); });
}

CB_API cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                          cudaLaunchAttributeValue* value) {
  return api([&] { return get_stream_attribute(stream, attribute, value, kLegacy); });
}
CB_API cudaError_t cudaStreamGetAttribute_ptsz(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                               cudaLaunchAttributeValue* value) {
  return api([&] { return get_stream_attribute(stream, attribute, value, kPerThread); });
}

CB_API cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from) {
  return api([&] { return copy_stream_attributes(to, from, kLegacy); });
}
CB_API cudaError_t cudaStreamCopyAttributes_ptsz(cudaStream_t to, cudaStream_t from) {
  return api([&] { return copy_stream_attributes(to, from, kPerThread); });
}
