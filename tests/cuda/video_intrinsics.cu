// SIMD intrinsics on the halves and bytes of a word, and video instructions by inline assembly.

#include <algorithm>

#include "array.h"

constexpr int kResults = 24;

__device__ unsigned scalar_video(unsigned a, unsigned b, unsigned c, int which) {
  unsigned d = 0;
  switch (which) {
    case 0:
      asm("vadd.s32.s32.s32.sat %0, %1, %2;" : "=r"(d) : "r"(a), "r"(b));
      break;
    case 1:
      asm("vabsdiff.u32.u32.u32.add %0, %1.b2, %2.b0, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
      break;
    case 2:
      asm("vmad.s32.s32.s32 %0, %1.h1, %2.h0, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
      break;
    case 3:
      asm("vadd4.u32.u32.u32.sat %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
      break;
    default:
      asm("vabsdiff4.u32.u32.u32.add %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  }
  return d;
}

__global__ void compute(const unsigned* a, const unsigned* b, const unsigned* c, unsigned* out) {
  int at = threadIdx.x + blockIdx.x * blockDim.x;
  unsigned x = a[at], y = b[at], z = c[at];
  unsigned* to = out + at * kResults;
  *to++ = __vadd2(x, y);
  *to++ = __vaddss2(x, y);
  *to++ = __vaddus4(x, y);
  *to++ = __vsub4(x, y);
  *to++ = __vsubss4(x, y);
  *to++ = __vavgs2(x, y);
  *to++ = __vavgu4(x, y);
  *to++ = __vhaddu4(x, y);
  *to++ = __vabsdiffu4(x, y);
  *to++ = __vabsdiffs2(x, y);
  *to++ = __vsadu4(x, y);
  *to++ = __vsads2(x, y);
  *to++ = __vmaxs4(x, y);
  *to++ = __vminu2(x, y);
  *to++ = __vcmpgtu4(x, y);
  *to++ = __vcmples2(x, y);
  *to++ = __vsetltu4(x, y);
  *to++ = __vneg2(x);
  *to++ = __vabsss4(x);
  for (int which = 0; which < 5; ++which) *to++ = scalar_video(x, y, z, which);
}

int64_t part(uint32_t word, int bits, int i, bool is_signed) {
  uint32_t top = word >> (bits * i) << (32 - bits);
  if (is_signed) return static_cast<int32_t>(top) >> (32 - bits);
  return top >> (32 - bits);
}
int64_t clamp(int64_t value, int bits, bool is_signed) {
  int64_t low = is_signed ? -(int64_t{1} << (bits - 1)) : 0;
  return std::min(std::max(value, low), low + (int64_t{1} << bits) - 1);
}
template <typename F>
uint32_t each(uint32_t x, uint32_t y, int bits, bool is_signed, F f) {
  uint32_t result = 0;
  for (int i = 0; i < 32 / bits; ++i) {
    int64_t value = f(part(x, bits, i, is_signed), part(y, bits, i, is_signed));
    result |= (static_cast<uint32_t>(value) & ((1u << bits) - 1)) << (bits * i);
  }
  return result;
}

std::vector<uint32_t> expected(uint32_t x, uint32_t y, uint32_t z) {
  using I = int64_t;
  auto gap = [](I a, I b) { return a > b ? a - b : b - a; };
  uint32_t gaps_u = 0, gaps_s = 0;
  for (int i = 0; i < 4; ++i) gaps_u += gap(part(x, 8, i, false), part(y, 8, i, false));
  for (int i = 0; i < 2; ++i) gaps_s += gap(part(x, 16, i, true), part(y, 16, i, true));
  auto sum_us = [](I a, I b) { return clamp(a + b, 8, false); };
  return {
      each(x, y, 16, false, [](I a, I b) { return a + b; }),
      each(x, y, 16, true, [](I a, I b) { return clamp(a + b, 16, true); }),
      each(x, y, 8, false, sum_us),
      each(x, y, 8, false, [](I a, I b) { return a - b; }),
      each(x, y, 8, true, [](I a, I b) { return clamp(a - b, 8, true); }),
      // Rounded away from zero.
      each(x, y, 16, true, [](I a, I b) { return a + b >= 0 ? (a + b + 1) / 2 : (a + b - 1) / 2; }),
      each(x, y, 8, false, [](I a, I b) { return (a + b + 1) / 2; }),
      each(x, y, 8, false, [](I a, I b) { return (a + b) / 2; }),
      each(x, y, 8, false, gap),
      each(x, y, 16, true, gap),
      gaps_u,
      gaps_s,
      each(x, y, 8, true, [](I a, I b) { return std::max(a, b); }),
      each(x, y, 16, false, [](I a, I b) { return std::min(a, b); }),
      each(x, y, 8, false, [](I a, I b) { return a > b ? 0xff : 0; }),
      each(x, y, 16, true, [](I a, I b) { return a <= b ? 0xffff : 0; }),
      each(x, y, 8, false, [](I a, I b) { return a < b ? 1 : 0; }),
      each(x, 0, 16, true, [](I a, I) { return -a; }),
      each(x, 0, 8, true, [](I a, I) { return clamp(a < 0 ? -a : a, 8, true); }),
      static_cast<uint32_t>(clamp(I{static_cast<int32_t>(x)} + static_cast<int32_t>(y), 32, true)),
      static_cast<uint32_t>(gap(part(x, 8, 2, false), part(y, 8, 0, false))) + z,
      static_cast<uint32_t>(part(x, 16, 1, true) * part(y, 16, 0, true)) + z,
      each(x, y, 8, false, sum_us),
      gaps_u + z,
  };
}

int main() {
  constexpr int kCases = 2048;
  Array<unsigned> a(kCases), b(kCases), c(kCases), out(kCases * kResults);
  Random random;
  for (int at = 0; at < kCases; ++at) {
    a.host[at] = static_cast<unsigned>(random.integer());
    b.host[at] = static_cast<unsigned>(random.integer());
    c.host[at] = static_cast<unsigned>(random.integer());
  }
  a.to_device();
  b.to_device();
  c.to_device();
  compute<<<kCases / 128, 128>>>(a.device, b.device, c.device, out.device);
  out.to_host();
  for (int at = 0; at < kCases; ++at) {
    std::vector<uint32_t> want = expected(a.host[at], b.host[at], c.host[at]);
    for (int k = 0; k < kResults; ++k) {
      if (out.host[at * kResults + k] == want[k]) continue;
      fprintf(stderr, "result %d of %x, %x, %x: ", k, a.host[at], b.host[at], c.host[at]);
      EXPECT_EQUAL(out.host[at * kResults + k], want[k]);
      if (failure_count() > 10) return failures();
    }
  }
  return failures();
}
