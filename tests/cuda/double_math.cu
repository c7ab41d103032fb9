// Double precision with each rounding direction, and exact functions, against the host.

#include <cfenv>
#include <cmath>

#include "array.h"

constexpr int kDirected = 24, kExact = 12, kResults = kDirected + kExact;

__global__ void compute(const double* a, const double* b, const double* c, double* out) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  double x = a[at], y = b[at], z = c[at];
  double* to = out + at * kResults;
#define IN_ALL_DIRECTIONS(name, ...) \
  *to++ = name##_rn(__VA_ARGS__);    \
  *to++ = name##_rz(__VA_ARGS__);    \
  *to++ = name##_ru(__VA_ARGS__);    \
  *to++ = name##_rd(__VA_ARGS__)
  IN_ALL_DIRECTIONS(__dadd, x, y);
  IN_ALL_DIRECTIONS(__dsub, x, y);
  IN_ALL_DIRECTIONS(__dmul, x, y);
  IN_ALL_DIRECTIONS(__ddiv, x, y);
  IN_ALL_DIRECTIONS(__dsqrt, fabs(x));
  IN_ALL_DIRECTIONS(__fma, x, y, z);
#undef IN_ALL_DIRECTIONS
  *to++ = fmin(x, y);
  *to++ = fmax(x, y);
  *to++ = floor(x);
  *to++ = ceil(x);
  *to++ = trunc(x);
  *to++ = rint(x);
  *to++ = round(x);
  *to++ = fmod(x, y);
  *to++ = remainder(x, y);
  *to++ = copysign(x, y);
  *to++ = ldexp(x, static_cast<int>(fmin(fmax(y, -2000.0), 2000.0)));
  *to++ = static_cast<double>(llrint(fmin(fmax(x, -1e15), 1e15)));
}

double directed(int k, const double* in) {
  constexpr int kDirections[] = {FE_TONEAREST, FE_TOWARDZERO, FE_UPWARD, FE_DOWNWARD};
  volatile double x = in[0], y = in[1], z = in[2], result = 0;
  fesetround(kDirections[k % 4]);
  if (k / 4 == 0) result = x + y;
  if (k / 4 == 1) result = x - y;
  if (k / 4 == 2) result = x * y;
  if (k / 4 == 3) result = x / y;
  if (k / 4 == 4) result = sqrt(fabs(x));
  if (k / 4 == 5) result = fma(x, y, z);
  fesetround(FE_TONEAREST);
  return result;
}

double exact(int k, double x, double y) {
  switch (k) {
    case 0:
      return fmin(x, y);
    case 1:
      return fmax(x, y);
    case 2:
      return floor(x);
    case 3:
      return ceil(x);
    case 4:
      return trunc(x);
    case 5:
      return rint(x);
    case 6:
      return round(x);
    case 7:
      return fmod(x, y);
    case 8:
      return remainder(x, y);
    case 9:
      return copysign(x, y);
    case 10:
      return ldexp(x, static_cast<int>(fmin(fmax(y, -2000.0), 2000.0)));
    default:
      return static_cast<double>(llrint(fmin(fmax(x, -1e15), 1e15)));
  }
}

int main() {
  constexpr int kCases = 512;
  Array<double> in(3 * kCases), out(kCases * kResults);
  Random random;
  for (double& value : in.host) {
    uint64_t kind = random.bits() % 4;
    value = kind == 0 ? bits_as<double>(random.bits()) : random.uniform(-1000, 1000);
    if (kind == 1) value = bits_as<double>(random.bits() & 0x801fffffffffffff);
    if (kind == 2) value = floor(value) / 2;
  }
  in.to_device();
  const double* a = in.device;
  compute<<<kCases / 64, 64>>>(a, a + kCases, a + 2 * kCases, out.device);
  out.to_host();
  for (int at = 0; at < kCases; ++at) {
    double sources[] = {in.host[at], in.host[kCases + at], in.host[2 * kCases + at]};
    for (int k = 0; k < kResults; ++k) {
      double actual = out.host[at * kResults + k];
      double wanted =
          k < kDirected ? directed(k, sources) : exact(k - kDirected, sources[0], sources[1]);
      bool is_extreme = k == kDirected || k == kDirected + 1;
      // Which zero fmin and fmax return for two is open.
      if (is_extreme && actual == 0 && wanted == 0) continue;
      if (bits_as<uint64_t>(actual) == bits_as<uint64_t>(wanted)) continue;
      if (std::isnan(actual) && std::isnan(wanted)) continue;
      fprintf(stderr, "result %d of %a, %a, %a: %a instead of %a\n", k, sources[0], sources[1],
              sources[2], actual, wanted);
      EXPECT(false);
      if (failure_count() > 10) return failures();
    }
  }
  return failures();
}
