#include "simulator/shims/client/copies.h"
#include "simulator/shims/client/streams.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;

namespace {

constexpr auto kLegacy = DefaultStream::kLegacy;
constexpr auto kPerThread = DefaultStream::kPerThread;

struct Rows {
  size_t width;  ///< elements
  size_t height = 1;
  size_t pitch_bytes = 0;
};

/// The element's size is that of `value`.
template <class Value>
CUresult fill_with(CUdeviceptr dst, Value value, Rows rows, CUstream stream,
                   DefaultStream null_means, bool async) {
  return context_call([&] {
    CopyMode mode;
    mode.async = async;
    if (!find_stream(stream, null_means, &mode.stream)) return cudaErrorInvalidResourceHandle;
    Fill request;
    request.dst = to_pointer(dst);
    request.value = value;
    request.element_bytes = sizeof value;
    request.elements = rows.width;
    request.rows = rows.height;
    request.pitch_bytes = rows.pitch_bytes;
    return fill(request, mode);
  });
}

}  // namespace

CB_DRIVER CUresult cuMemsetD8_v2(CUdeviceptr dst, unsigned char value, size_t count) {
  return fill_with(dst, value, {count}, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemsetD8_v2_ptds(CUdeviceptr dst, unsigned char value, size_t count) {
  return fill_with(dst, value, {count}, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemsetD8Async(CUdeviceptr dst, unsigned char value, size_t count,
                                   CUstream stream) {
  return fill_with(dst, value, {count}, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemsetD8Async_ptsz(CUdeviceptr dst, unsigned char value, size_t count,
                                        CUstream stream) {
  return fill_with(dst, value, {count}, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemsetD16_v2(CUdeviceptr dst, unsigned short value, size_t count) {
  return fill_with(dst, value, {count}, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemsetD16_v2_ptds(CUdeviceptr dst, unsigned short value, size_t count) {
  return fill_with(dst, value, {count}, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemsetD16Async(CUdeviceptr dst, unsigned short value, size_t count,
                                    CUstream stream) {
  return fill_with(dst, value, {count}, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemsetD16Async_ptsz(CUdeviceptr dst, unsigned short value, size_t count,
                                         CUstream stream) {
  return fill_with(dst, value, {count}, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemsetD32_v2(CUdeviceptr dst, unsigned value, size_t count) {
  return fill_with(dst, value, {count}, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemsetD32_v2_ptds(CUdeviceptr dst, unsigned value, size_t count) {
  return fill_with(dst, value, {count}, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemsetD32Async(CUdeviceptr dst, unsigned value, size_t count,
                                    CUstream stream) {
  return fill_with(dst, value, {count}, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemsetD32Async_ptsz(CUdeviceptr dst, unsigned value, size_t count,
                                         CUstream stream) {
  return fill_with(dst, value, {count}, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemsetD2D8_v2(CUdeviceptr dst, size_t pitch, unsigned char value, size_t width,
                                   size_t height) {
  return fill_with(dst, value, {width, height, pitch}, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemsetD2D8_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned char value,
                                        size_t width, size_t height) {
  return fill_with(dst, value, {width, height, pitch}, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemsetD2D8Async(CUdeviceptr dst, size_t pitch, unsigned char value,
                                     size_t width, size_t height, CUstream stream) {
  return fill_with(dst, value, {width, height, pitch}, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemsetD2D8Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned char value,
                                          size_t width, size_t height, CUstream stream) {
  return fill_with(dst, value, {width, height, pitch}, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemsetD2D16_v2(CUdeviceptr dst, size_t pitch, unsigned short value,
                                    size_t width, size_t height) {
  return fill_with(dst, value, {width, height, pitch}, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemsetD2D16_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned short value,
                                         size_t width, size_t height) {
  return fill_with(dst, value, {width, height, pitch}, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemsetD2D16Async(CUdeviceptr dst, size_t pitch, unsigned short value,
                                      size_t width, size_t height, CUstream stream) {
  return fill_with(dst, value, {width, height, pitch}, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemsetD2D16Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned short value,
                                           size_t width, size_t height, CUstream stream) {
  return fill_with(dst, value, {width, height, pitch}, stream, kPerThread, true);
}

CB_DRIVER CUresult cuMemsetD2D32_v2(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                                    size_t height) {
  return fill_with(dst, value, {width, height, pitch}, nullptr, kLegacy, false);
}
CB_DRIVER CUresult cuMemsetD2D32_v2_ptds(CUdeviceptr dst, size_t pitch, unsigned value,
                                         size_t width, size_t height) {
  return fill_with(dst, value, {width, height, pitch}, nullptr, kPerThread, false);
}
CB_DRIVER CUresult cuMemsetD2D32Async(CUdeviceptr dst, size_t pitch, unsigned value, size_t width,
                                      size_t height, CUstream stream) {
  return fill_with(dst, value, {width, height, pitch}, stream, kLegacy, true);
}
CB_DRIVER CUresult cuMemsetD2D32Async_ptsz(CUdeviceptr dst, size_t pitch, unsigned value,
                                           size_t width, size_t height, CUstream stream) {
  return fill_with(dst, value, {width, height, pitch}, stream, kPerThread, true);
}
