// Arithmetic and comparisons on __half and __half2 against double precision, rounded once.

#include <cuda_fp16.h>

#include <cmath>

#include "array.h"

constexpr int kResults = 16;

__global__ void compute(const __half2* a, const __half2* b, const __half2* c, __half2* out,
                        unsigned* flags) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  __half2 x = a[at], y = b[at], z = c[at];
  __half2* to = out + at * kResults;
  *to++ = __hadd2(x, y);
  *to++ = __hsub2(x, y);
  *to++ = __hmul2(x, y);
  *to++ = __hfma2(x, y, z);
  *to++ = __hadd2_sat(x, y);
  *to++ = __hfma2_sat(x, y, z);
  *to++ = __hfma2_relu(x, y, z);
  *to++ = __hmin2(x, y);
  *to++ = __hmax2(x, y);
  *to++ = __hmax2_nan(x, y);
  *to++ = __hneg2(x);
  *to++ = __habs2(x);
  *to++ =
      __halves2half2(__hadd(__low2half(x), __low2half(y)), __hmul(__high2half(x), __high2half(y)));
  *to++ = h2rint(x);
  *to++ = h2floor(x);
  *to++ = __floats2half2_rn(__low2float(x) * 3.0f, __high2float(x) * 5.0f);
  unsigned bits = 0;
  bits |= __heq(x.x, y.x) << 0 | __hlt(x.x, y.x) << 1 | __hge(x.x, y.x) << 2;
  bits |= __hltu(x.x, y.x) << 3 | __hisnan(x.x) << 4 | __hbne2(x, y) << 5 | __hbltu2(x, y) << 6;
  flags[at] = bits;
}

/// Rounded to nearest, ties to even, from a value that double holds exactly or nearly so.
uint16_t to_half(double value) {
  if (std::isnan(value)) return 0x7fff;
  uint16_t sign = std::signbit(value) ? 0x8000 : 0;
  double magnitude = fabs(value);
  if (magnitude >= 65520) return sign | 0x7c00;
  int exponent = magnitude == 0 ? -14 : ilogb(magnitude);
  if (exponent < -14) exponent = -14;
  // Units of the last place; carrying into the next exponent is what the pattern does too.
  auto units = static_cast<uint32_t>(nearbyint(ldexp(magnitude, 10 - exponent)));
  return static_cast<uint16_t>(sign | (((exponent + 14) << 10) + units));
}
double from_half(uint16_t bits) {
  double sign = (bits & 0x8000) != 0 ? -1 : 1;
  int exponent = bits >> 10 & 31, fraction = bits & 1023;
  if (exponent == 31) return fraction != 0 ? NAN : sign * INFINITY;
  return sign * (exponent == 0 ? ldexp(fraction, -24) : ldexp(1024 + fraction, exponent - 25));
}

double saturated(double v) { return std::isnan(v) ? 0.0 : v <= 0 ? 0.0 : v > 1 ? 1.0 : v; }
double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

uint16_t expected(int k, int half, double x, double y, double z) {
  switch (k) {
    case 0:
      return to_half(x + y);
    case 1:
      return to_half(x - y);
    case 2:
      return to_half(x * y);
    case 3:
      return to_half(fma(x, y, z));
    case 4:
      return to_half(saturated(x + y));
    case 5:
      return to_half(saturated(fma(x, y, z)));
    case 6:
      return to_half(std::isnan(fma(x, y, z)) ? NAN : fma(x, y, z) > 0 ? fma(x, y, z) : 0.0);
    case 7:
      return to_half(-larger(-x, -y));
    case 8:
      return to_half(larger(x, y));
    case 9:
      return to_half(std::isnan(x) || std::isnan(y) ? NAN : larger(x, y));
    case 10:
      return to_half(-x);
    case 11:
      return to_half(fabs(x));
    case 12:
      return to_half(half == 0 ? x + y : x * y);
    case 13:
      return to_half(rint(x));
    case 14:
      return to_half(floor(x));
    default:
      return to_half(x * (half == 0 ? 3 : 5));
  }
}

int main() {
  constexpr int kCases = 1024;
  Array<uint32_t> in(3 * kCases), out(kCases * kResults), flags(kCases);
  Random random;
  for (uint32_t& pair : in.host) {
    // Numbers from 1/16 to 16: fma of them is exact in double.
    pair = 0x3c003c00 ^ (static_cast<uint32_t>(random.bits()) & 0x8fff8fff);
    if (random.bits() % 8 == 0) pair = random.bits() % 2 == 0 ? 0x7c00fe01 : 0x80010000;
  }
  in.to_device();
  auto pairs = reinterpret_cast<const __half2*>(in.device);
  compute<<<kCases / 128, 128>>>(pairs, pairs + kCases, pairs + 2 * kCases,
                                 reinterpret_cast<__half2*>(out.device), flags.device);
  out.to_host();
  flags.to_host();
  for (int at = 0; at < kCases && failure_count() < 10; ++at) {
    double v[3][2];
    for (int i = 0; i < 6; ++i) {
      v[i / 2][i % 2] =
          from_half(static_cast<uint16_t>(in.host[i / 2 * kCases + at] >> 16 * (i % 2)));
    }
    for (int i = 0; i < 2 * kResults; ++i) {
      auto actual = static_cast<uint16_t>(out.host[at * kResults + i / 2] >> 16 * (i % 2));
      uint16_t wanted = expected(i / 2, i % 2, v[0][i % 2], v[1][i % 2], v[2][i % 2]);
      bool both_nan = (actual & 0x7fff) > 0x7c00 && (wanted & 0x7fff) > 0x7c00;
      if (actual == wanted || both_nan) continue;
      fprintf(stderr, "result %d of %g, %g, %g: ", i / 2, v[0][i % 2], v[1][i % 2], v[2][i % 2]);
      EXPECT_EQUAL(actual, wanted);
    }
    double x = v[0][0], y = v[1][0], x1 = v[0][1], y1 = v[1][1];
    unsigned bits = (x == y) | (x < y) << 1 | (x >= y) << 2 | !(x >= y) << 3 | std::isnan(x) << 4;
    bool both_differ = x < y || x > y;
    bits |= (both_differ && (x1 < y1 || x1 > y1)) << 5 | (!(x >= y) && !(x1 >= y1)) << 6;
    EXPECT_EQUAL(flags.host[at], bits);
  }
  return failures();
}
