// mma.sync of one warp against sums on the host, for .f16, .bf16, .tf32, .s8 and .f64. The operands
// are small whole numbers, whose sums are exact whatever the order.
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <vector>

#include "check.h"

/// Element i of a thread's fragment: registers alternate between the upper and the lower eight rows
/// of A, and a register has `per` neighbours of one row.
template <typename T>
__device__ void load_fragments(const T* a, const T* b, int k, int per, int count_a, int count_b,
                               T* of_a, T* of_b) {
  int group = threadIdx.x / 4, thread = threadIdx.x % 4;
  for (int i = 0; i < count_a; ++i) {
    int row = group + i / per % 2 * 8, column = thread * per + i % per + i / per / 2 * 4 * per;
    of_a[i] = a[row * k + column];
  }
  for (int i = 0; i < count_b; ++i) {
    of_b[i] = b[(thread * per + i % per + i / per * 4 * per) * 8 + group];
  }
}

template <typename T>
__device__ void store_result(const T* d, T* out) {
  for (int i = 0; i < 4; ++i) {
    out[(threadIdx.x / 4 + i / 2 * 8) * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
  }
}

__device__ void multiply(const __half* fa, const __half* fb, float* d) {
  auto* a = (const unsigned*)fa;
  auto* b = (const unsigned*)fb;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply(const __nv_bfloat16* fa, const __nv_bfloat16* fb, float* d) {
  auto* a = (const unsigned*)fa;
  auto* b = (const unsigned*)fb;
  asm("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply(const float* fa, const float* fb, float* d) {
  auto* a = (const unsigned*)fa;
  auto* b = (const unsigned*)fb;
  asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply(const signed char* fa, const signed char* fb, int* d) {
  auto* a = (const unsigned*)fa;
  auto* b = (const unsigned*)fb;
  asm("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+r"(d[0]), "+r"(d[1]), "+r"(d[2]), "+r"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}
__device__ void multiply(const double* a, const double* b, double* d) {
  asm("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, "
      "{%0,%1,%2,%3};"
      : "+d"(d[0]), "+d"(d[1]), "+d"(d[2]), "+d"(d[3])
      : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
}

template <typename T, typename Sum, int kK, int kPer>
__global__ void product(const T* a, const T* b, Sum* out) {
  alignas(16) T of_a[16 * kK / 32];
  alignas(16) T of_b[8 * kK / 32];
  load_fragments(a, b, kK, kPer, 16 * kK / 32, 8 * kK / 32, of_a, of_b);
  Sum d[4] = {1, 1, 1, 1};
  multiply(of_a, of_b, d);
  multiply(of_a, of_b, d);
  store_result(d, out);
}

template <typename T, typename Sum, int kK, int kPer>
void test(const char* name) {
  T *a, *b;
  Sum* out;
  REQUIRE_OK(cudaMallocHost(&a, 16 * kK * sizeof(T)));
  REQUIRE_OK(cudaMallocHost(&b, 8 * kK * sizeof(T)));
  REQUIRE_OK(cudaMallocHost(&out, 128 * sizeof(Sum)));
  std::vector<int> numbers_a, numbers_b;
  for (int i = 0; i < 16 * kK; ++i) numbers_a.push_back(i * 7 % 13 - 6);
  for (int i = 0; i < 8 * kK; ++i) numbers_b.push_back(i * 5 % 11 - 5);
  for (int i = 0; i < 16 * kK; ++i) a[i] = T((float)numbers_a[i]);
  for (int i = 0; i < 8 * kK; ++i) b[i] = T((float)numbers_b[i]);
  product<T, Sum, kK, kPer><<<1, 32>>>(a, b, out);
  REQUIRE_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int row = 0; row < 16; ++row) {
    for (int column = 0; column < 8; ++column) {
      int sum = 0;
      for (int k = 0; k < kK; ++k) sum += numbers_a[row * kK + k] * numbers_b[k * 8 + column];
      wrong += out[row * 8 + column] != Sum(1 + 2 * sum);
    }
  }
  if (!EXPECT_EQUAL(wrong, 0)) fprintf(stderr, "  for %s\n", name);
}

int main() {
  test<__half, float, 16, 2>("f16");
  test<__nv_bfloat16, float, 16, 2>("bf16");
  test<float, float, 8, 1>("tf32");
  test<signed char, int, 32, 4>("s8");
  test<double, double, 8, 1>("f64");
  return failures();
}
