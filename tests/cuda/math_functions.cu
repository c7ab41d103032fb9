// Functions of the CUDA math library against the host's, within the errors that the CUDA
// Programming Guide documents, in units of the last place.

#include <cmath>

#include "array.h"

#define SINGLE_FUNCTIONS(X) \
  X(sinf, sinl, 2)          \
  X(cosf, cosl, 2)          \
  X(tanf, tanl, 4)          \
  X(asinf, asinl, 2)        \
  X(acosf, acosl, 2)        \
  X(atanf, atanl, 2)        \
  X(sinhf, sinhl, 3)        \
  X(coshf, coshl, 2)        \
  X(tanhf, tanhl, 2)        \
  X(expf, expl, 2)          \
  X(exp2f, exp2l, 2)        \
  X(exp10f, exp10l, 2)      \
  X(expm1f, expm1l, 1)      \
  X(cbrtf, cbrtl, 1) X(erff, erfl, 2) X(erfcf, erfcl, 4) X(asinhf, asinhl, 3) X(sqrtf, sqrtl, 0)
#define DOUBLE_FUNCTIONS(X) \
  X(sin, sinl, 2)           \
  X(cos, cosl, 2)           \
  X(tan, tanl, 2)           \
  X(asin, asinl, 2)         \
  X(acos, acosl, 2)         \
  X(atan, atanl, 2)         \
  X(sinh, sinhl, 2)         \
  X(cosh, coshl, 1)         \
  X(tanh, tanhl, 2)         \
  X(exp, expl, 1)           \
  X(exp2, exp2l, 1)         \
  X(expm1, expm1l, 1)       \
  X(cbrt, cbrtl, 1) X(erf, erfl, 2) X(erfc, erfcl, 5) X(asinh, asinhl, 3) X(sqrt, sqrtl, 0)
/// Of positive numbers only.
#define SINGLE_LOGARITHMS(X) X(logf, logl, 1) X(log2f, log2l, 1) X(log10f, log10l, 2)
#define DOUBLE_LOGARITHMS(X) \
  X(log, logl, 1) X(log2, log2l, 1) X(log10, log10l, 1) X(tgamma, tgammal, 10)

#define COUNT(f, model, ulps) +1
constexpr int kSingle = 0 SINGLE_FUNCTIONS(COUNT) SINGLE_LOGARITHMS(COUNT) + 2;
constexpr int kDouble = 0 DOUBLE_FUNCTIONS(COUNT) DOUBLE_LOGARITHMS(COUNT) + 2;

__global__ void compute(const double* a, const double* b, float* singles, double* doubles) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  double x = a[at], y = b[at];
  auto xf = static_cast<float>(x), yf = static_cast<float>(y);
  float* s = singles + at * kSingle;
  double* d = doubles + at * kDouble;
#define CALL_SINGLE(f, model, ulps) *s++ = f(xf);
#define CALL_SINGLE_POSITIVE(f, model, ulps) *s++ = f(fabsf(xf));
#define CALL_DOUBLE(f, model, ulps) *d++ = f(x);
#define CALL_DOUBLE_POSITIVE(f, model, ulps) *d++ = f(fabs(x));
  SINGLE_FUNCTIONS(CALL_SINGLE)
  SINGLE_LOGARITHMS(CALL_SINGLE_POSITIVE)
  *s++ = powf(fabsf(xf), yf);
  *s++ = atan2f(xf, yf);
  DOUBLE_FUNCTIONS(CALL_DOUBLE)
  DOUBLE_LOGARITHMS(CALL_DOUBLE_POSITIVE)
  *d++ = pow(fabs(x), y);
  *d++ = atan2(x, y);
}

/// The distance in units of the last place of the wanted number, which may be a little more exact.
template <typename T>
double ulps_between(T actual, long double wanted) {
  if (std::isnan(wanted)) return std::isnan(actual) ? 0 : 1e9;
  auto nearest = static_cast<T>(wanted);
  if (std::isinf(nearest) || std::isinf(actual)) return actual == nearest ? 0 : 1e9;
  int exponent = wanted == 0 ? -20000 : ilogbl(wanted);
  int digits = sizeof(T) == 4 ? 23 : 52, lowest = sizeof(T) == 4 ? -126 : -1022;
  if (exponent < lowest) exponent = lowest;
  return static_cast<double>(fabsl(actual - wanted) / ldexpl(1, exponent - digits));
}

template <typename T>
void check(const char* name, T x, T y, T actual, long double wanted, double most) {
  // Half a unit more for the rounding of the exact result.
  double error = ulps_between(actual, wanted);
  if (error <= most + 0.5001) return;
  fprintf(stderr, "%s(%.17g, %.17g) is %.17g instead of %.17Lg: %g units\n", name, double(x),
          double(y), double(actual), wanted, error);
  EXPECT(false);
}

int main() {
  constexpr int kCases = 512;
  Array<double> a(kCases), b(kCases), doubles(kCases * kDouble);
  Array<float> singles(kCases * kSingle);
  Random random;
  for (int at = 0; at < kCases; ++at) {
    double range = at % 4 == 0 ? 1 : at % 4 == 1 ? 8 : at % 4 == 2 ? 80 : 1e-3;
    a.host[at] = static_cast<float>(random.uniform(-range, range));
    b.host[at] = static_cast<float>(random.uniform(-3, 3));
  }
  double edges[] = {0.0, -0.0, 1.0, -1.0, INFINITY, -INFINITY, NAN, 1e5, 3e-39};
  int place = 0;
  for (double edge : edges) a.host[place++] = edge;
  a.to_device();
  b.to_device();
  compute<<<kCases / 64, 64>>>(a.device, b.device, singles.device, doubles.device);
  singles.to_host();
  doubles.to_host();
  for (int at = 0; at < kCases && failure_count() < 20; ++at) {
    const float* s = &singles.host[at * kSingle];
    const double* d = &doubles.host[at * kDouble];
    double x = a.host[at], y = b.host[at];
    auto xf = static_cast<float>(x), yf = static_cast<float>(y);
#define CHECK_SINGLE(f, model, ulps) check<float>(#f, xf, yf, *s++, model((long double)xf), ulps);
#define CHECK_SINGLE_POSITIVE(f, model, ulps) \
  check<float>(#f, xf, yf, *s++, model(fabsl(xf)), ulps);
#define CHECK_DOUBLE(f, model, ulps) check<double>(#f, x, y, *d++, model((long double)x), ulps);
#define CHECK_DOUBLE_POSITIVE(f, model, ulps) check<double>(#f, x, y, *d++, model(fabsl(x)), ulps);
    SINGLE_FUNCTIONS(CHECK_SINGLE)
    SINGLE_LOGARITHMS(CHECK_SINGLE_POSITIVE)
    check<float>("powf", xf, yf, *s++, powl(fabsl(xf), yf), 4);
    check<float>("atan2f", xf, yf, *s++, atan2l(xf, yf), 3);
    DOUBLE_FUNCTIONS(CHECK_DOUBLE)
    DOUBLE_LOGARITHMS(CHECK_DOUBLE_POSITIVE)
    check<double>("pow", x, y, *d++, powl(fabsl(x), y), 2);
    check<double>("atan2", x, y, *d++, atan2l(x, y), 2);
  }
  return failures();
}
