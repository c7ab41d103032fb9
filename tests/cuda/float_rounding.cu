// Single precision with each rounding direction: the intrinsics against the host's own directed
// rounding.

#include <cfenv>
#include <cmath>

#include "array.h"

constexpr int kResults = 24;

__global__ void compute(const float* a, const float* b, const float* c, float* out) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  float x = a[at], y = b[at], z = c[at];
  float* to = out + at * kResults;
#define IN_ALL_DIRECTIONS(name, ...) \
  *to++ = name##_rn(__VA_ARGS__);    \
  *to++ = name##_rz(__VA_ARGS__);    \
  *to++ = name##_ru(__VA_ARGS__);    \
  *to++ = name##_rd(__VA_ARGS__)
  IN_ALL_DIRECTIONS(__fadd, x, y);
  IN_ALL_DIRECTIONS(__fsub, x, y);
  IN_ALL_DIRECTIONS(__fmul, x, y);
  IN_ALL_DIRECTIONS(__fdiv, x, y);
  IN_ALL_DIRECTIONS(__fsqrt, fabsf(x));
  IN_ALL_DIRECTIONS(__fmaf, x, y, z);
#undef IN_ALL_DIRECTIONS
}

__global__ void convert(const float* a, const double* d, int* integers, float* narrowed,
                        float* made) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  float x = a[at];
  int* i = integers + at * 4;
  i[0] = __float2int_rn(x);
  i[1] = __float2int_rz(x);
  i[2] = __float2int_ru(x);
  i[3] = __float2int_rd(x);
  float* n = narrowed + at * 4;
  n[0] = __double2float_rn(d[at]);
  n[1] = __double2float_rz(d[at]);
  n[2] = __double2float_ru(d[at]);
  n[3] = __double2float_rd(d[at]);
  float* m = made + at * 4;
  m[0] = __ll2float_rn(__double_as_longlong(d[at]));
  m[1] = __ll2float_rz(__double_as_longlong(d[at]));
  m[2] = __ull2float_ru(__double_as_longlong(d[at]));
  m[3] = __int2float_rd(static_cast<int>(__double_as_longlong(d[at])));
}

constexpr int kDirections[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};

/// The same number, or both NaN.
void expect_same(float actual, float wanted, const char* what, int at) {
  if (bits_as<uint32_t>(actual) == bits_as<uint32_t>(wanted)) return;
  if (std::isnan(actual) && std::isnan(wanted)) return;
  fprintf(stderr, "%s %d: %a instead of %a\n", what, at, actual, wanted);
  EXPECT(false);
}

/// What is computed between changes of the rounding direction must go through memory.
void check_arithmetic(const float* in, const float* out, int at) {
  for (int k = 0; k < kResults; ++k) {
    volatile float x = in[0], y = in[1], z = in[2], result;
    fesetround(kDirections[k % 4]);
    if (k / 4 == 0) result = x + y;
    if (k / 4 == 1) result = x - y;
    if (k / 4 == 2) result = x * y;
    if (k / 4 == 3) result = x / y;
    if (k / 4 == 4) result = sqrtf(fabsf(x));
    if (k / 4 == 5) result = fmaf(x, y, z);
    fesetround(FE_TONEAREST);
    expect_same(out[k], result, "arithmetic", at * kResults + k);
  }
}

int saturated(double rounded) {
  if (std::isnan(rounded)) return 0;
  if (rounded >= 2147483647.0) return 2147483647;
  return rounded <= -2147483648.0 ? -2147483647 - 1 : static_cast<int>(rounded);
}

void check_conversions(float x, double d, const int* integers, const float* narrowed,
                       const float* made) {
  auto word = static_cast<long long>(bits_as<uint64_t>(d));
  for (int k = 0; k < 4; ++k) {
    volatile double from = x, wide = d;
    volatile float result, number;
    volatile long long whole = word;
    volatile unsigned long long unsigned_whole = word;
    fesetround(kDirections[k]);
    volatile double rounded = std::nearbyint(from);
    result = static_cast<float>(wide);
    number = k == 2   ? static_cast<float>(unsigned_whole)
             : k == 3 ? static_cast<float>(static_cast<int>(whole))
                      : static_cast<float>(whole);
    fesetround(FE_TONEAREST);
    EXPECT_EQUAL(integers[k], saturated(rounded));
    expect_same(narrowed[k], result, "double to float", k);
    expect_same(made[k], number, "integer to float", k);
  }
}

int main() {
  constexpr int kCases = 1024;
  Array<float> in(3 * kCases), out(kCases * kResults), narrowed(4 * kCases), made(4 * kCases);
  Array<double> doubles(kCases);
  Array<int> integers(4 * kCases);
  Random random;
  for (float& value : in.host) {
    uint64_t kind = random.bits() % 4;
    uint32_t bits = static_cast<uint32_t>(random.bits());
    value = kind == 0 ? bits_as<float>(bits) : static_cast<float>(random.uniform(-8, 8));
    if (kind == 1) value = bits_as<float>(bits & 0x80ffffff);
  }
  for (int at = 0; at < kCases; ++at) {
    doubles.host[at] = at % 4 == 0 ? bits_as<double>(random.bits()) : random.uniform(-1e10, 1e10);
    if (at % 4 == 1) doubles.host[at] *= 1e-52;
  }
  in.to_device();
  doubles.to_device();
  const float* a = in.device;
  compute<<<kCases / 128, 128>>>(a, a + kCases, a + 2 * kCases, out.device);
  convert<<<kCases / 128, 128>>>(a, doubles.device, integers.device, narrowed.device, made.device);
  out.to_host();
  integers.to_host();
  narrowed.to_host();
  made.to_host();
  for (int at = 0; at < kCases && failure_count() < 10; ++at) {
    float sources[] = {in.host[at], in.host[kCases + at], in.host[2 * kCases + at]};
    check_arithmetic(sources, &out.host[at * kResults], at);
    check_conversions(in.host[at], doubles.host[at], &integers.host[4 * at], &narrowed.host[4 * at],
                      &made.host[4 * at]);
  }
  return failures();
}
