// Inline assembly as communication libraries write it: nested scopes with registers of their own,
// the same label in sibling scopes, several statements on a line, loops around them.
#include <cstdint>

__device__ inline void wait_for(const uint32_t* flag, uint32_t value) {
  asm volatile(
      "{\n\t"
      ".reg .pred P1;\n\t"
      ".reg .u32 seen;\n"
      "LAB_WAIT:\n\t"
      "ld.acquire.sys.global.u32 seen, [%0];\n\t"
      "setp.ge.u32 P1, seen, %1;\n\t"
      "@P1 bra DONE;\n\t"
      "bra LAB_WAIT;\n"
      "DONE:\n\t"
      "}" ::"l"(flag),
      "r"(value)
      : "memory");
}

__device__ inline uint64_t swap_halves(uint64_t x) {
  uint64_t result;
  asm("{ .reg .b32 lo, hi; mov.b64 {lo, hi}, %1; mov.b64 %0, {hi, lo}; }" : "=l"(result) : "l"(x));
  return result;
}

__device__ inline uint4 load_relaxed(const uint4* p) {
  uint4 v;
  asm volatile("ld.relaxed.sys.global.L1::no_allocate.v4.u32 {%0,%1,%2,%3}, [%4+16];"
               : "=r"(v.x), "=r"(v.y), "=r"(v.z), "=r"(v.w)
               : "l"(p)
               : "memory");
  return v;
}

__device__ inline int exchange128(uint64_t* p, uint64_t low, uint64_t high) {
  int matched;
  asm volatile(
      "{ .reg .b128 cmp, val, old; .reg .pred q; .reg .u64 a, b;\n"
      "mov.b128 cmp, {%2, %3}; mov.b128 val, {%3, %2};\n"
      "atom.cas.sys.global.b128 old, [%1], cmp, val;\n"
      "mov.b128 {a, b}, old; setp.eq.u64 q, a, %2; selp.s32 %0, 1, (2 - 3) * 1, q; }"
      : "=r"(matched)
      : "l"(p), "l"(low), "l"(high)
      : "memory");
  return matched;
}

__device__ inline bool elected() {
  uint32_t chosen;
  asm volatile("{ .reg .pred %%px<2>; elect.sync _|%%px1, 0xffffffff; selp.b32 %0, 1, 0, %%px1; }"
               : "=r"(chosen));
  return chosen != 0;
}

__device__ inline void load_tile(void* tile, const void* map, uint64_t* barrier, int x, int y) {
  uint32_t to = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(barrier));
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%3, %4}], [%2];" ::"r"(to),
      "l"(map), "r"(bar), "r"(x), "r"(y)
      : "memory");
}

__global__ void exchange(uint32_t* flags, uint64_t* data, uint4* vectors, const void* map) {
  __shared__ alignas(128) char tile[1024];
  __shared__ uint64_t barrier;
  if (elected()) load_tile(tile, map, &barrier, 3, 4);
  for (int peer = 0; peer < 3; ++peer) wait_for(flags + peer, 7 + peer);
  data[threadIdx.x] = swap_halves(data[threadIdx.x]);
  vectors[threadIdx.x] = load_relaxed(vectors + blockIdx.x);
  flags[8] = exchange128(data + 64, data[1], data[2]) + tile[threadIdx.x];
}
