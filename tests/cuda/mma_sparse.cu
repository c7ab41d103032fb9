// mma.sp: A keeps two of each four numbers, in places that differ from row to row.
#include <cuda_fp16.h>

#include "check.h"

constexpr int kK = 32;

/// The kept numbers of row r are those at first(r, group) and second(r, group) of each four.
__host__ __device__ int first_place(int row, int group) { return (row + group) % 3; }
__host__ __device__ int second_place(int row, int group) {
  return first_place(row, group) + 1 + (row / 3 + group) % (3 - first_place(row, group));
}

/// Sixteen bits: the places of four groups from `group` on.
__device__ unsigned places(int row, int group) {
  unsigned bits = 0;
  for (int i = 0; i < 4; ++i) {
    bits |= (first_place(row, group + i) | second_place(row, group + i) << 2) << (4 * i);
  }
  return bits;
}

__global__ void product(const __half* a, const __half* b, float* out) {
  int group = threadIdx.x / 4, thread = threadIdx.x % 4;
  alignas(4) __half kept[8], of_b[8];
  for (int i = 0; i < 8; ++i) {
    int row = group + i / 2 % 2 * 8, number = thread * 2 + i % 2 + i / 4 * 8;
    int place = number % 2 == 0 ? first_place(row, number / 2) : second_place(row, number / 2);
    kept[i] = a[row * kK + number / 2 * 4 + place];
    of_b[i] = b[(thread * 2 + i % 2 + i / 2 * 8) * 8 + group];
  }
  // With selector 0, the first two threads of four have the places of 16 columns each.
  unsigned metadata = 0;
  if (thread < 2) metadata = places(group, thread * 4) | places(group + 8, thread * 4) << 16;
  auto* ra = (const unsigned*)kept;
  auto* rb = (const unsigned*)of_b;
  float d[4] = {};
  asm("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
      "{%4,%5,%6,%7}, {%8,%9,%10,%11}, {%0,%1,%2,%3}, %12, 0x0;"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(ra[0]), "r"(ra[1]), "r"(ra[2]), "r"(ra[3]), "r"(rb[0]), "r"(rb[1]), "r"(rb[2]),
        "r"(rb[3]), "r"(metadata));
  for (int i = 0; i < 4; ++i) out[(group + i / 2 * 8) * 8 + thread * 2 + i % 2] = d[i];
}

int main() {
  __half *a, *b;
  float* out;
  REQUIRE_OK(cudaMallocHost(&a, 16 * kK * sizeof *a));
  REQUIRE_OK(cudaMallocHost(&b, kK * 8 * sizeof *b));
  REQUIRE_OK(cudaMallocHost(&out, 128 * sizeof *out));
  for (int i = 0; i < 16 * kK; ++i) {
    int row = i / kK, group = i % kK / 4, place = i % 4;
    bool is_kept = place == first_place(row, group) || place == second_place(row, group);
    a[i] = __half(is_kept ? float(i * 7 % 13 - 6) : 0.0f);
  }
  for (int i = 0; i < kK * 8; ++i) b[i] = __half(float(i * 5 % 11 - 5));
  product<<<1, 32>>>(a, b, out);
  REQUIRE_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < 128; ++i) {
    float sum = 0;
    for (int k = 0; k < kK; ++k) sum += float(a[i / 8 * kK + k]) * float(b[k * 8 + i % 8]);
    wrong += out[i] != sum;
  }
  EXPECT_EQUAL(wrong, 0);
  return failures();
}
