// Integer intrinsics against their definitions: products, bits, funnel shifts, bytes, dot products.

#include "array.h"

constexpr int kResults = 34;

__global__ void compute(const uint64_t* a, const uint64_t* b, const uint64_t* c, uint64_t* out) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  uint64_t x = a[at], y = b[at], z = c[at];
  auto u = static_cast<unsigned>(x), v = static_cast<unsigned>(y), w = static_cast<unsigned>(z);
  auto i = static_cast<int>(x), j = static_cast<int>(y);
  uint64_t* to = out + at * kResults;
  auto put = [&](unsigned value) { *to++ = value; };
  put(__umulhi(u, v));
  put(__mulhi(i, j));
  *to++ = __umul64hi(x, y);
  *to++ = __mul64hi(x, y);
  put(__umul24(u, v));
  put(__mul24(i, j));
  put(__usad(u, v, w));
  put(__sad(i, j, w));
  put(__uhadd(u, v));
  put(__hadd(i, j));
  put(__urhadd(u, v));
  put(__rhadd(i, j));
  put(__brev(u));
  *to++ = __brevll(x);
  put(__clz(i));
  put(__clzll(x));
  put(__ffs(i));
  put(__ffsll(x));
  put(__popc(u));
  put(__popcll(x));
  put(__byte_perm(u, v, w));
  put(__funnelshift_l(u, v, w));
  put(__funnelshift_lc(u, v, w));
  put(__funnelshift_r(u, v, w));
  put(__funnelshift_rc(u, v, w));
  put(__dp4a(i, j, static_cast<int>(w)));
  put(__dp4a(u, v, w));
  put(__dp2a_lo(i, j, static_cast<int>(w)));
  put(__dp2a_hi(u, v, w));
  *to++ = x / (y | 1);
  *to++ = static_cast<uint64_t>(static_cast<int64_t>(x) % static_cast<int64_t>(y | 2));
  put(static_cast<unsigned>(i / (j == -1 || j == 0 ? 3 : j)));
  *to++ = static_cast<uint64_t>(llabs(static_cast<int64_t>(x)));
  *to++ = static_cast<uint64_t>(max(static_cast<int64_t>(x), static_cast<int64_t>(y)));
}

int64_t floor_half(int64_t value) { return value >> 1; }
uint64_t reversed(uint64_t value, int bits) {
  uint64_t result = 0;
  for (int i = 0; i < bits; ++i) result |= (value >> i & 1) << (bits - 1 - i);
  return result;
}
int64_t low24(int64_t value) { return (value << 40) >> 40; }
uint64_t magnitude(int64_t value) { return value < 0 ? -static_cast<uint64_t>(value) : value; }
int byte_of(uint32_t word, int i, bool is_signed) {
  return is_signed ? static_cast<int8_t>(word >> 8 * i) : static_cast<uint8_t>(word >> 8 * i);
}

std::vector<uint64_t> expected(uint64_t x, uint64_t y, uint64_t z) {
  auto u = static_cast<uint32_t>(x), v = static_cast<uint32_t>(y), w = static_cast<uint32_t>(z);
  int64_t i = static_cast<int32_t>(u), j = static_cast<int32_t>(v);
  uint64_t both = static_cast<uint64_t>(v) << 32 | u;
  std::vector<uint64_t> out;
  auto put = [&](int64_t value) { out.push_back(static_cast<uint32_t>(value)); };
  put(static_cast<uint64_t>(u) * v >> 32);
  put(i * j >> 32);
  out.push_back(static_cast<uint64_t>(static_cast<unsigned __int128>(x) * y >> 64));
  out.push_back(static_cast<uint64_t>(
      static_cast<__int128>(static_cast<int64_t>(x)) * static_cast<int64_t>(y) >> 64));
  put(static_cast<int64_t>((u & 0xffffff) * static_cast<uint64_t>(v & 0xffffff)));
  put(low24(i) * low24(j));
  put(static_cast<int64_t>(u > v ? u - v : v - u) + w);
  put(static_cast<int64_t>(magnitude(i - j)) + w);
  put((static_cast<int64_t>(u) + v) >> 1);
  put(floor_half(i + j));
  put((static_cast<int64_t>(u) + v + 1) >> 1);
  put(floor_half(i + j + 1));
  put(static_cast<int64_t>(reversed(u, 32)));
  out.push_back(reversed(x, 64));
  put(u == 0 ? 32 : __builtin_clz(u));
  put(x == 0 ? 64 : __builtin_clzll(x));
  put(__builtin_ffs(static_cast<int>(u)));
  put(__builtin_ffsll(static_cast<long long>(x)));
  put(__builtin_popcount(u));
  put(__builtin_popcountll(x));
  uint32_t bytes = 0;
  for (int k = 0; k < 4; ++k) {
    bytes |= static_cast<uint32_t>(both >> 8 * (w >> 4 * k & 7) & 0xff) << 8 * k;
  }
  put(bytes);
  uint32_t wrapped = w & 31, clamped = w > 32 ? 32 : w;
  put(static_cast<int64_t>(both << wrapped >> 32));
  put(static_cast<int64_t>(both << clamped >> 32));
  put(static_cast<int64_t>(both >> wrapped));
  put(static_cast<int64_t>(both >> clamped));
  int64_t dot_s = static_cast<int32_t>(w), dot_u = w, low = static_cast<int32_t>(w), high = w;
  for (int k = 0; k < 4; ++k) {
    dot_s += byte_of(u, k, true) * byte_of(v, k, true);
    dot_u += byte_of(u, k, false) * byte_of(v, k, false);
  }
  for (int k = 0; k < 2; ++k) {
    low += static_cast<int16_t>(u >> 16 * k) * byte_of(v, k, true);
    high += static_cast<uint16_t>(u >> 16 * k) * static_cast<int64_t>(byte_of(v, k + 2, false));
  }
  put(dot_s);
  put(dot_u);
  put(low);
  put(high);
  out.push_back(x / (y | 1));
  auto divisor = static_cast<int64_t>(y | 2);
  auto dividend = static_cast<int64_t>(x);
  out.push_back(divisor == -1 ? 0 : static_cast<uint64_t>(dividend % divisor));
  put(i / (j == -1 || j == 0 ? 3 : j));
  out.push_back(magnitude(dividend));
  out.push_back(static_cast<uint64_t>(dividend > static_cast<int64_t>(y) ? x : y));
  return out;
}

int main() {
  constexpr int kCases = 2048;
  Array<uint64_t> a(kCases), b(kCases), c(kCases), out(kCases * kResults);
  Random random;
  for (int at = 0; at < kCases; ++at) {
    a.host[at] = random.integer();
    b.host[at] = random.integer();
    c.host[at] = random.bits() % 2 == 0 ? random.bits() % 70 : random.integer();
  }
  a.to_device();
  b.to_device();
  c.to_device();
  compute<<<kCases / 128, 128>>>(a.device, b.device, c.device, out.device);
  out.to_host();
  for (int at = 0; at < kCases; ++at) {
    std::vector<uint64_t> want = expected(a.host[at], b.host[at], c.host[at]);
    EXPECT_EQUAL(want.size(), kResults);
    for (int k = 0; k < kResults; ++k) {
      if (out.host[at * kResults + k] == want[k]) continue;
      fprintf(stderr, "case %d, result %d of %llx, %llx, %llx: ", at, k,
              (unsigned long long)a.host[at], (unsigned long long)b.host[at],
              (unsigned long long)c.host[at]);
      EXPECT_EQUAL(out.host[at * kResults + k], want[k]);
      if (failure_count() > 10) return failures();
    }
  }
  return failures();
}
