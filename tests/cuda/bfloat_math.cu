// Arithmetic and comparisons on __nv_bfloat16 and pairs of it against double precision, rounded
// once.

#include <cuda_bf16.h>

#include <cmath>

#include "array.h"

constexpr int kResults = 14;

__global__ void compute(const __nv_bfloat162* a, const __nv_bfloat162* b, const __nv_bfloat162* c,
                        __nv_bfloat162* out, unsigned* flags) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  __nv_bfloat162 x = a[at], y = b[at], z = c[at];
  __nv_bfloat162* to = out + at * kResults;
  *to++ = __hadd2(x, y);
  *to++ = __hsub2(x, y);
  *to++ = __hmul2(x, y);
  *to++ = __hfma2(x, y, z);
  *to++ = __hfma2_relu(x, y, z);
  *to++ = __hmin2(x, y);
  *to++ = __hmax2(x, y);
  *to++ = __hmin2_nan(x, y);
  *to++ = __hneg2(x);
  *to++ = __habs2(x);
  *to++ = __halves2bfloat162(__hadd(x.x, y.x), __hmul(x.y, y.y));
  *to++ = h2trunc(x);
  *to++ = h2ceil(x);
  *to++ = __floats2bfloat162_rn(__low2float(x) * 3.0f, __high2float(x) * 5.0f);
  unsigned bits = 0;
  bits |= __hne(x.x, y.x) << 0 | __hgt(x.x, y.x) << 1 | __hle(x.x, y.x) << 2;
  bits |= __hgtu(x.x, y.x) << 3 | __hisinf(x.x) << 4 | __hbeq2(x, y) << 5 | __hbleu2(x, y) << 6;
  flags[at] = bits;
}

double from_bfloat(uint16_t bits) { return bits_as<float>(static_cast<uint32_t>(bits) << 16); }

/// Rounded to nearest, ties to even.
uint16_t to_bfloat(double value) {
  if (std::isnan(value)) return 0x7fff;
  // Odd where inexact, so that the second rounding errs not.
  auto single = static_cast<float>(value);
  auto bits = bits_as<uint32_t>(single);
  if (!std::isinf(single) && single != value) {
    bool beyond = fabs(static_cast<double>(single)) > fabs(value);
    if (beyond) --bits;
    bits |= 1;
  }
  return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

double larger(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  if (a == b) return std::signbit(a) ? b : a;
  return a > b ? a : b;
}

uint16_t expected(int k, int half, double x, double y, double z) {
  double sum = fma(x, y, z);
  switch (k) {
    case 0:
      return to_bfloat(x + y);
    case 1:
      return to_bfloat(x - y);
    case 2:
      return to_bfloat(x * y);
    case 3:
      return to_bfloat(sum);
    case 4:
      return to_bfloat(std::isnan(sum) ? NAN : sum > 0 ? sum : 0.0);
    case 5:
      return to_bfloat(-larger(-x, -y));
    case 6:
      return to_bfloat(larger(x, y));
    case 7:
      return to_bfloat(std::isnan(x) || std::isnan(y) ? NAN : -larger(-x, -y));
    case 8:
      return to_bfloat(-x);
    case 9:
      return to_bfloat(fabs(x));
    case 10:
      return to_bfloat(half == 0 ? x + y : x * y);
    case 11:
      return to_bfloat(trunc(x));
    case 12:
      return to_bfloat(ceil(x));
    default:
      return to_bfloat(x * (half == 0 ? 3 : 5));
  }
}

int main() {
  constexpr int kCases = 1024;
  Array<uint32_t> in(3 * kCases), out(kCases * kResults), flags(kCases);
  Random random;
  for (uint32_t& pair : in.host) {
    // Numbers from 1/8 to 2: fma of them is exact in double.
    pair = 0x3f803f80 ^ (static_cast<uint32_t>(random.bits()) & 0x81ff81ff);
    if (random.bits() % 8 == 0) pair = random.bits() % 2 == 0 ? 0x7f80ffc1 : 0x80000001;
  }
  in.to_device();
  auto pairs = reinterpret_cast<const __nv_bfloat162*>(in.device);
  compute<<<kCases / 128, 128>>>(pairs, pairs + kCases, pairs + 2 * kCases,
                                 reinterpret_cast<__nv_bfloat162*>(out.device), flags.device);
  out.to_host();
  flags.to_host();
  for (int at = 0; at < kCases && failure_count() < 10; ++at) {
    double v[3][2];
    for (int i = 0; i < 6; ++i) {
      v[i / 2][i % 2] =
          from_bfloat(static_cast<uint16_t>(in.host[i / 2 * kCases + at] >> 16 * (i % 2)));
    }
    for (int i = 0; i < 2 * kResults; ++i) {
      auto actual = static_cast<uint16_t>(out.host[at * kResults + i / 2] >> 16 * (i % 2));
      uint16_t wanted = expected(i / 2, i % 2, v[0][i % 2], v[1][i % 2], v[2][i % 2]);
      bool both_nan = (actual & 0x7fff) > 0x7f80 && (wanted & 0x7fff) > 0x7f80;
      if (actual == wanted || both_nan) continue;
      fprintf(stderr, "result %d of %g, %g, %g: ", i / 2, v[0][i % 2], v[1][i % 2], v[2][i % 2]);
      EXPECT_EQUAL(actual, wanted);
    }
    double x = v[0][0], y = v[1][0], x1 = v[0][1], y1 = v[1][1];
    unsigned bits = (x < y || x > y) | (x > y) << 1 | (x <= y) << 2 | !(x <= y) << 3;
    bits |= static_cast<unsigned>(std::isinf(x)) << 4;
    bits |= (x == y && x1 == y1) << 5 | (!(x > y) && !(x1 > y1)) << 6;
    // __hisinf returns the sign.
    EXPECT_EQUAL(flags.host[at] | (std::isinf(x) ? ~0u << 4 : 0),
                 bits | (std::isinf(x) ? ~0u << 4 : 0));
  }
  return failures();
}
