// mma.sync on 8-bit floats: every number of .e4m3 times powers of two of .e5m2, as the type's own
// conversion to float says.
#include <cuda_fp8.h>

#include <cmath>

#include "check.h"

/// Warp w multiplies rows of numbers 16w to 16w + 15 with a matrix B that has one factor a column.
__global__ void product(const unsigned char* factors, float* out) {
  int group = threadIdx.x % 32 / 4, thread = threadIdx.x % 4, warp = threadIdx.x / 32;
  // Only the first column of A and the first row of B are not zero.
  unsigned a[4] = {}, b[2] = {};
  if (thread == 0) {
    a[0] = warp * 16 + group;
    a[1] = warp * 16 + group + 8;
    b[0] = factors[group];
  }
  float d[4] = {};
  asm("mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  for (int i = 0; i < 4; ++i) {
    out[(warp * 16 + group + i / 2 * 8) * 8 + thread * 2 + i % 2] = d[i];
  }
}

int main() {
  unsigned char* factors;
  float* out;
  REQUIRE_OK(cudaMallocHost(&factors, 8));
  REQUIRE_OK(cudaMallocHost(&out, 256 * 8 * sizeof(float)));
  for (int i = 0; i < 8; ++i)
    factors[i] = __nv_fp8_e5m2(std::ldexp(i % 2 ? -1.0f : 1.0f, i * 3 - 14)).__x;
  product<<<1, 512>>>(factors, out);
  REQUIRE_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < 256 * 8; ++i) {
    __nv_fp8_e4m3 a;
    __nv_fp8_e5m2 b;
    a.__x = (unsigned char)(i / 8);
    b.__x = factors[i % 8];
    float expected = float(a) * float(b);
    wrong += !(out[i] == expected || (std::isnan(out[i]) && std::isnan(expected)));
  }
  EXPECT_EQUAL(wrong, 0);
  return failures();
}
