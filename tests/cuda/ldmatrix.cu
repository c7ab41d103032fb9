// ldmatrix, stmatrix and movmatrix: four matrices of 8 by 8 halves, plain and transposed.
#include "check.h"

/// Matrix m has element (row, column) at m * 64 + row * 8 + column.
__global__ void move(unsigned short* out) {
  __shared__ alignas(16) unsigned short tile[256];
  __shared__ alignas(16) unsigned short back[512];
  int lane = threadIdx.x;
  for (int i = lane; i < 256; i += 32) tile[i] = (unsigned short)(i * 3);
  __syncwarp();
  unsigned row = (unsigned)__cvta_generic_to_shared(tile + lane * 8);
  unsigned to = (unsigned)__cvta_generic_to_shared(back + lane * 8);
  unsigned r[4], t[4];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
               : "r"(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(t[0]), "=r"(t[1]), "=r"(t[2]), "=r"(t[3])
               : "r"(row));
  for (int m = 0; m < 4; ++m) {
    unsigned moved;
    asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(moved) : "r"(r[m]));
    ((unsigned*)out)[m * 32 + lane] = r[m];
    ((unsigned*)out)[128 + m * 32 + lane] = t[m];
    ((unsigned*)out)[256 + m * 32 + lane] = moved;
  }
  asm volatile("stmatrix.sync.aligned.m8n8.x4.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to), "r"(r[0]),
               "r"(r[1]), "r"(r[2]), "r"(r[3]));
  asm volatile(
      "stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(to + 512),
      "r"(r[0]), "r"(r[1]), "r"(r[2]), "r"(r[3]));
  __syncwarp();
  for (int i = lane; i < 512; i += 32) out[768 + i] = back[i];
}

int main() {
  unsigned short* out;
  REQUIRE_OK(cudaMallocHost(&out, 1280 * sizeof *out));
  move<<<1, 32>>>(out);
  REQUIRE_OK(cudaDeviceSynchronize());
  int wrong[5] = {};
  for (int i = 0; i < 256; ++i) {
    int turned = i / 64 * 64 + i % 8 * 8 + i / 8 % 8;
    auto at = [](int index) { return (unsigned short)(index * 3); };
    // A lane holds two neighbours of a row, so that the lanes' registers lie as the matrix does.
    wrong[0] += out[i] != at(i);
    wrong[1] += out[256 + i] != at(turned);
    wrong[2] += out[512 + i] != at(turned);
    wrong[3] += out[768 + i] != at(i);
    wrong[4] += out[1024 + i] != at(turned);
  }
  EXPECT_EQUAL(wrong[0], 0);
  EXPECT_EQUAL(wrong[1], 0);
  EXPECT_EQUAL(wrong[2], 0);
  EXPECT_EQUAL(wrong[3], 0);
  EXPECT_EQUAL(wrong[4], 0);
  return failures();
}
