// Sums, differences and products of 128 and 256 bits by carry chains of 32 and 64 bits.

#include "array.h"

struct Wide {
  uint64_t low, high;
};

__device__ Wide add32(Wide a, Wide b) {
  unsigned r[4];
  asm("add.cc.u32 %0, %4, %8;\n\taddc.cc.u32 %1, %5, %9;\n\t"
      "addc.cc.u32 %2, %6, %10;\n\taddc.u32 %3, %7, %11;"
      : "=&r"(r[0]), "=&r"(r[1]), "=&r"(r[2]), "=&r"(r[3])
      : "r"(unsigned(a.low)), "r"(unsigned(a.low >> 32)), "r"(unsigned(a.high)),
        "r"(unsigned(a.high >> 32)), "r"(unsigned(b.low)), "r"(unsigned(b.low >> 32)),
        "r"(unsigned(b.high)), "r"(unsigned(b.high >> 32)));
  return {r[0] | uint64_t(r[1]) << 32, r[2] | uint64_t(r[3]) << 32};
}

__device__ Wide sub64(Wide a, Wide b) {
  Wide r;
  asm("sub.cc.u64 %0, %2, %4;\n\tsubc.u64 %1, %3, %5;"
      : "=&l"(r.low), "=&l"(r.high)
      : "l"(a.low), "l"(a.high), "l"(b.low), "l"(b.high));
  return r;
}

/// The product of two numbers of 64 bits from 32-bit factors.
__device__ Wide multiply(uint64_t a, uint64_t b) {
  unsigned a0 = a, a1 = a >> 32, b0 = b, b1 = b >> 32, r0, r1, r2, r3;
  asm("mul.lo.u32 %0, %4, %6;\n\t"
      "mul.hi.u32 %1, %4, %6;\n\t"
      "mad.lo.cc.u32 %1, %4, %7, %1;\n\t"
      "madc.hi.u32 %2, %4, %7, 0;\n\t"
      "mad.lo.cc.u32 %1, %5, %6, %1;\n\t"
      "madc.hi.cc.u32 %2, %5, %6, %2;\n\t"
      "addc.u32 %3, 0, 0;\n\t"
      "mad.lo.cc.u32 %2, %5, %7, %2;\n\t"
      "madc.hi.u32 %3, %5, %7, %3;"
      : "=&r"(r0), "=&r"(r1), "=&r"(r2), "=&r"(r3)
      : "r"(a0), "r"(a1), "r"(b0), "r"(b1));
  return {r0 | uint64_t(r1) << 32, r2 | uint64_t(r3) << 32};
}

/// a + b * c with 64-bit steps.
__device__ Wide multiply_add(Wide a, uint64_t b, uint64_t c) {
  Wide r;
  asm("mad.lo.cc.u64 %0, %2, %3, %4;\n\tmadc.hi.u64 %1, %2, %3, %5;"
      : "=&l"(r.low), "=&l"(r.high)
      : "l"(b), "l"(c), "l"(a.low), "l"(a.high));
  return r;
}

__global__ void compute(const Wide* a, const Wide* b, Wide* out) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  out[4 * at] = add32(a[at], b[at]);
  out[4 * at + 1] = sub64(a[at], b[at]);
  out[4 * at + 2] = multiply(a[at].low, b[at].low);
  out[4 * at + 3] = multiply_add(a[at], b[at].low, b[at].high);
}

unsigned __int128 number(Wide w) { return static_cast<unsigned __int128>(w.high) << 64 | w.low; }

int main() {
  constexpr int kCases = 1024;
  Array<Wide> a(kCases), b(kCases), out(4 * kCases);
  Random random;
  for (int at = 0; at < kCases; ++at) {
    a.host[at] = {random.integer(), random.integer()};
    b.host[at] = {random.integer(), random.integer()};
  }
  a.to_device();
  b.to_device();
  compute<<<kCases / 64, 64>>>(a.device, b.device, out.device);
  out.to_host();
  for (int at = 0; at < kCases; ++at) {
    unsigned __int128 x = number(a.host[at]), y = number(b.host[at]);
    using Big = unsigned __int128;
    EXPECT(number(out.host[4 * at]) == x + y);
    EXPECT(number(out.host[4 * at + 1]) == x - y);
    EXPECT(number(out.host[4 * at + 2]) == static_cast<Big>(a.host[at].low) * b.host[at].low);
    EXPECT(number(out.host[4 * at + 3]) == x + static_cast<Big>(b.host[at].low) * b.host[at].high);
    if (failure_count() > 10) break;
  }
  return failures();
}
