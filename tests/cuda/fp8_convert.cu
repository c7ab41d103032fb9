// The 8-bit floats e4m3 and e5m2: every pattern to half precision, and numbers of single and half
// precision to them, saturating and not.

#include <cuda_fp16.h>
#include <cuda_fp8.h>

#include <cmath>

#include "array.h"

__global__ void widen(uint16_t* out) {
  int pattern = threadIdx.x;
  auto e4m3 = static_cast<__nv_fp8_storage_t>(pattern);
  out[pattern] = __half_raw(__nv_cvt_fp8_to_halfraw(e4m3, __NV_E4M3)).x;
  out[256 + pattern] = __half_raw(__nv_cvt_fp8_to_halfraw(e4m3, __NV_E5M2)).x;
  auto pair = static_cast<__nv_fp8x2_storage_t>(pattern << 8 | (255 - pattern));
  __half2_raw both = __nv_cvt_fp8x2_to_halfraw2(pair, __NV_E4M3);
  out[512 + pattern] = both.y;
}

__global__ void narrow(const float* in, uint8_t* out, uint16_t* pairs) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  out[4 * at] = __nv_cvt_float_to_fp8(in[at], __NV_SATFINITE, __NV_E4M3);
  out[4 * at + 1] = __nv_cvt_float_to_fp8(in[at], __NV_SATFINITE, __NV_E5M2);
  __half half = __float2half_rn(in[at]);
  out[4 * at + 2] = __nv_cvt_halfraw_to_fp8(half, __NV_SATFINITE, __NV_E4M3);
  __nv_fp8_e5m2 value(half);
  out[4 * at + 3] = value.__x;
  pairs[at] = __nv_cvt_float2_to_fp8x2(make_float2(in[at], -in[at]), __NV_SATFINITE, __NV_E4M3);
}

struct Format {
  int mantissa, bias;
  double largest;
};
constexpr Format kE4m3 = {3, 7, 448}, kE5m2 = {2, 15, 57344};

double value_of(int pattern, const Format& format) {
  double sign = (pattern & 0x80) != 0 ? -1 : 1;
  int magnitude = pattern & 0x7f, field = magnitude >> format.mantissa;
  int fraction = magnitude & ((1 << format.mantissa) - 1);
  if (format.mantissa == 3 && magnitude == 0x7f) return NAN;
  if (format.mantissa == 2 && field == 31) return fraction != 0 ? NAN : sign * INFINITY;
  int exponent = field == 0 ? 1 : field;
  if (field != 0) fraction += 1 << format.mantissa;
  return sign * ldexp(fraction, exponent - format.bias - format.mantissa);
}

/// The nearest number, the even one of two; never infinite.
int nearest(double value, const Format& format) {
  if (std::isnan(value)) return 0x7f;
  int sign = std::signbit(value) ? 0x80 : 0, best = 0;
  double magnitude = fmin(fabs(value), format.largest);
  for (int pattern = 0; pattern < 0x7f; ++pattern) {
    double here = value_of(pattern, format), there = value_of(best, format);
    if (!(fabs(here) <= format.largest)) continue;
    double gap = fabs(here - magnitude), best_gap = fabs(there - magnitude);
    if (gap < best_gap || (gap == best_gap && pattern % 2 == 0)) best = pattern;
  }
  return sign | best;
}

double from_half(uint16_t bits) { return __half2float(__half(__half_raw{bits})); }
bool same(double a, double b) { return (std::isnan(a) && std::isnan(b)) || a == b; }

int main() {
  Array<uint16_t> wide(768);
  widen<<<1, 256>>>(wide.device);
  wide.to_host();
  for (int pattern = 0; pattern < 256; ++pattern) {
    EXPECT(same(from_half(wide.host[pattern]), value_of(pattern, kE4m3)));
    EXPECT(same(from_half(wide.host[256 + pattern]), value_of(pattern, kE5m2)));
    EXPECT(same(from_half(wide.host[512 + pattern]), value_of(pattern, kE4m3)));
  }
  constexpr int kCases = 1024;
  Array<float> in(kCases);
  Array<uint8_t> out(4 * kCases);
  Array<uint16_t> pairs(kCases);
  Random random;
  for (int at = 0; at < kCases; ++at) {
    // Halfway between neighbours, and near that.
    int pattern = static_cast<int>(random.bits() % 126);
    const Format& format = at % 2 == 0 ? kE4m3 : kE5m2;
    double middle = (value_of(pattern % 120, format) + value_of(pattern % 120 + 1, format)) / 2;
    in.host[at] = static_cast<float>(middle * (at % 3 == 0 ? 1 : random.uniform(-2, 2)));
    if (at % 16 == 0) in.host[at] = bits_as<float>(static_cast<uint32_t>(random.bits()));
  }
  in.to_device();
  narrow<<<kCases / 128, 128>>>(in.device, out.device, pairs.device);
  out.to_host();
  pairs.to_host();
  for (int at = 0; at < kCases && failure_count() < 10; ++at) {
    double half = __half2float(__float2half_rn(in.host[at]));
    EXPECT_EQUAL(out.host[4 * at], nearest(in.host[at], kE4m3));
    EXPECT_EQUAL(out.host[4 * at + 1], nearest(in.host[at], kE5m2));
    EXPECT_EQUAL(out.host[4 * at + 2], nearest(half, kE4m3));
    EXPECT_EQUAL(out.host[4 * at + 3], nearest(half, kE5m2));
    EXPECT_EQUAL(pairs.host[at] & 0xff, nearest(in.host[at], kE4m3));
    EXPECT_EQUAL(pairs.host[at] >> 8, nearest(-in.host[at], kE4m3));
  }
  return failures();
}
