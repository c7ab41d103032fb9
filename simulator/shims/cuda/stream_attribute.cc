#include "simulator/shims/client/stream_attributes.h"

#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

static_assert(sizeof(CUlaunchAttributeValue) == sizeof(cudaLaunchAttributeValue));

CUresult set(CUstream stream, CUlaunchAttributeID attribute, const CUlaunchAttributeValue* value,
             DefaultStream null_means) {
  auto* same = reinterpret_cast<const cudaLaunchAttributeValue*>(value);
  return context_call([&] { return set_stream_attribute(stream, attribute, same, null_means); });
}

CUresult get(CUstream stream, CUlaunchAttributeID attribute, CUlaunchAttributeValue* value,
             DefaultStream null_means) {
  auto* same = reinterpret_cast<cudaLaunchAttributeValue*>(value);
  return context_call([&] { return get_stream_attribute(stream, attribute, same, null_means); });
}

}  // namespace

CB_DRIVER CUresult cuStreamSetAttribute(CUstream stream, CUlaunchAttributeID attribute,
                                        const CUlaunchAttributeValue* value) {
  return set(stream, attribute, value, kLegacy);
}
CB_DRIVER CUresult cuStreamSetAttribute_ptsz(CUstream stream, CUlaunchAttributeID attribute,
                                             const CUlaunchAttributeValue* value) {
  return set(stream, attribute, value, kPerThread);
}

CB_DRIVER CUresult cuStreamGetAttribute(CUstream stream, CUlaunchAttributeID attribute,
                                        CUlaunchAttributeValue* value) {
  return get(stream, attribute, value, kLegacy);
}
CB_DRIVER CUresult cuStreamGetAttribute_ptsz(CUstream stream, CUlaunchAttributeID attribute,
                                             CUlaunchAttributeValue* value) {
  return get(stream, attribute, value, kPerThread);
}

CB_DRIVER CUresult cuStreamCopyAttributes(CUstream to, CUstream from) {
  return context_call([&] { return copy_stream_attributes(to, from, kLegacy); });
}
CB_DRIVER CUresult cuStreamCopyAttributes_ptsz(CUstream to, CUstream from) {
  return context_call([&] { return copy_stream_attributes(to, from, kPerThread); });
}
