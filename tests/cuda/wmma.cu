// A 64 by 64 by 64 product with nvcuda::wmma: fragments of .f16 with .f32 sums, layouts of all
// kinds, and .s8 with whole numbers.
#include <cuda_fp16.h>
#include <mma.h>

#include <type_traits>

#include "check.h"

using namespace nvcuda::wmma;

constexpr int kSize = 64;

/// A warp for each 16 by 16 tile. D = 2 * A * B + C.
template <typename T, typename Sum, typename LayoutA, typename LayoutB>
__global__ void product(const T* a, const T* b, const Sum* c, Sum* d) {
  int row = blockIdx.x * 16, column = threadIdx.x / 32 * 16;
  fragment<matrix_a, 16, 16, 16, T, LayoutA> of_a;
  fragment<matrix_b, 16, 16, 16, T, LayoutB> of_b;
  fragment<accumulator, 16, 16, 16, Sum> sum, addend;
  fill_fragment(sum, Sum(0));
  for (int k = 0; k < kSize; k += 16) {
    bool row_a = std::is_same<LayoutA, row_major>::value;
    bool row_b = std::is_same<LayoutB, row_major>::value;
    load_matrix_sync(of_a, a + (row_a ? row * kSize + k : k * kSize + row), kSize);
    load_matrix_sync(of_b, b + (row_b ? k * kSize + column : column * kSize + k), kSize);
    mma_sync(sum, of_a, of_b, sum);
  }
  load_matrix_sync(addend, c + row * kSize + column, kSize, mem_row_major);
  for (int i = 0; i < sum.num_elements; ++i) sum.x[i] = Sum(2) * sum.x[i] + addend.x[i];
  store_matrix_sync(d + column * kSize + row, sum, kSize, mem_col_major);
}

template <typename T, typename Sum, typename LayoutA, typename LayoutB>
void test() {
  constexpr int kCount = kSize * kSize;
  bool row_a = std::is_same<LayoutA, row_major>::value;
  bool row_b = std::is_same<LayoutB, row_major>::value;
  T *a, *b;
  Sum *c, *d;
  REQUIRE_OK(cudaMallocHost(&a, kCount * sizeof(T)));
  REQUIRE_OK(cudaMallocHost(&b, kCount * sizeof(T)));
  REQUIRE_OK(cudaMallocHost(&c, kCount * sizeof(Sum)));
  REQUIRE_OK(cudaMallocHost(&d, kCount * sizeof(Sum)));
  for (int i = 0; i < kCount; ++i) {
    a[i] = T(float(i * 7 % 13 - 6));
    b[i] = T(float(i * 5 % 11 - 5));
    c[i] = Sum(i % 17);
  }
  product<T, Sum, LayoutA, LayoutB><<<kSize / 16, 128>>>(a, b, c, d);
  REQUIRE_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int row = 0; row < kSize; ++row) {
    for (int column = 0; column < kSize; ++column) {
      float sum = 0;
      for (int k = 0; k < kSize; ++k) {
        sum += float(a[row_a ? row * kSize + k : k * kSize + row]) *
               float(b[row_b ? k * kSize + column : column * kSize + k]);
      }
      wrong += d[column * kSize + row] != Sum(2 * sum) + c[row * kSize + column];
    }
  }
  EXPECT_EQUAL(wrong, 0);
}

int main() {
  test<__half, float, row_major, row_major>();
  test<__half, float, col_major, row_major>();
  test<__half, float, row_major, col_major>();
  test<signed char, int, row_major, col_major>();
  test<signed char, int, col_major, row_major>();
  return failures();
}
