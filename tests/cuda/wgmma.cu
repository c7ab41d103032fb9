// wgmma: one warpgroup multiplies 64 by 64 tiles of .bf16 from shared memory, with the 128-byte
// swizzle and without one, and small tiles of .tf32 and .e4m3.
#include <cuda_bf16.h>
#include <cuda_fp8.h>

#include "check.h"

constexpr int kRows = 64;

__device__ unsigned long long descriptor(const void* tile, int leading, int stride, int mode) {
  unsigned address = (unsigned)__cvta_generic_to_shared(tile);
  return (address & 0x3ffff) >> 4 | (unsigned long long)(leading >> 4) << 16 |
         (unsigned long long)(stride >> 4) << 32 | (unsigned long long)mode << 62;
}

__device__ void begin() {
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
}
__device__ void finish() {
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned 0;" ::: "memory");
}

#define D8(i)                                                                                 \
  "+f"(d[i]), "+f"(d[i + 1]), "+f"(d[i + 2]), "+f"(d[i + 3]), "+f"(d[i + 4]), "+f"(d[i + 5]), \
      "+f"(d[i + 6]), "+f"(d[i + 7])

__device__ void multiply_64(float* d, unsigned long long a, unsigned long long b, int add) {
  asm volatile(
      "{ .reg .pred p; setp.ne.b32 p, %34, 0;\n"
      "wgmma.mma_async.sync.aligned.m64n64k16.f32.bf16.bf16 {%0,%1,%2,%3,%4,%5,%6,%7,%8,%9,%10,%11,"
      "%12,%13,%14,%15,%16,%17,%18,%19,%20,%21,%22,%23,%24,%25,%26,%27,%28,%29,%30,%31}, %32, %33, "
      "p, "
      "1, 1, 0, 0; }"
      : D8(0), D8(8), D8(16), D8(24)
      : "l"(a), "l"(b), "r"(add));
}
__device__ void multiply_8(float* d, unsigned long long a, unsigned long long b, float) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k8.f32.tf32.tf32 {%0,%1,%2,%3}, %4, %5, 0, 1, 1;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b));
}
__device__ void multiply_8(float* d, unsigned long long a, unsigned long long b, __nv_fp8_e4m3) {
  asm volatile("wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e4m3 {%0,%1,%2,%3}, %4, %5, 0, 1, 1;"
               : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
               : "l"(a), "l"(b));
}

/// A thread's results: pairs of columns, the upper and the lower eight rows of its warp.
__device__ void store(const float* d, int n, float* out) {
  int row = threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4;
  for (int i = 0; i < n / 2; ++i) {
    out[(row + i / 2 % 2 * 8) * n + i / 4 * 8 + threadIdx.x % 4 * 2 + i % 2] = d[i];
  }
}

/// Rows of 64 numbers, 128 bytes. Swizzled: 16-byte pieces change places with the row's number.
/// Else: bricks of eight rows of 16 bytes, bricks of a row 1024 bytes apart.
__global__ void tiles(const __nv_bfloat16* a, const __nv_bfloat16* b, float* out, bool swizzled) {
  __shared__ alignas(1024) __nv_bfloat16 tile[2][kRows * 64];
  for (int i = threadIdx.x; i < kRows * 64; i += 128) {
    int row = i / 64, piece = i % 64 / 8;
    int at = swizzled ? row * 64 + (piece ^ row % 8) * 8 : row / 8 * 64 + piece * 512 + row % 8 * 8;
    tile[0][at + i % 8] = a[i];
    tile[1][at + i % 8] = b[i];
  }
  float d[32];
  begin();
  for (int k = 0; k < 4; ++k) {
    // Sixteen numbers are two pieces.
    int step = swizzled ? k * 16 : k * 1024;
    int leading = swizzled ? 16 : 1024, stride = swizzled ? 1024 : 128;
    multiply_64(d, descriptor(tile[0] + step, leading, stride, swizzled),
                descriptor(tile[1] + step, leading, stride, swizzled), k > 0);
  }
  finish();
  store(d, 64, out);
}

template <typename T>
__global__ void small(const T* a, const T* b, float* out) {
  constexpr int kK = 32 / sizeof(T), kPiece = 16 / sizeof(T);
  __shared__ alignas(128) T tile[2][kRows * kK];
  for (int i = threadIdx.x; i < kRows * kK; i += 128) {
    int row = i / kK, piece = i % kK / kPiece;
    int at = row / 8 * 16 * kPiece + piece * 8 * kPiece + row % 8 * kPiece + i % kPiece;
    tile[0][at] = a[i];
    if (row < 8) tile[1][at] = b[i];
  }
  float d[4];
  begin();
  multiply_8(d, descriptor(tile[0], 128, 256, 0), descriptor(tile[1], 128, 256, 0), T());
  finish();
  store(d, 8, out);
}

template <typename T, typename Launch>
void test(const char* name, int n, int k, Launch launch) {
  T *a, *b;
  float* out;
  REQUIRE_OK(cudaMallocHost(&a, kRows * k * sizeof(T)));
  REQUIRE_OK(cudaMallocHost(&b, n * k * sizeof(T)));
  REQUIRE_OK(cudaMallocHost(&out, kRows * n * sizeof(float)));
  for (int i = 0; i < kRows * k; ++i) a[i] = T(float(i * 7 % 13 - 6));
  for (int i = 0; i < n * k; ++i) b[i] = T(float(i * 5 % 11 - 5));
  launch(a, b, out);
  REQUIRE_OK(cudaDeviceSynchronize());
  int wrong = 0;
  for (int i = 0; i < kRows * n; ++i) {
    float sum = 0;
    for (int j = 0; j < k; ++j) sum += float(a[i / n * k + j]) * float(b[i % n * k + j]);
    wrong += out[i] != sum;
  }
  if (!EXPECT_EQUAL(wrong, 0)) fprintf(stderr, "  for %s\n", name);
}

int main() {
  for (bool swizzled : {true, false}) {
    test<__nv_bfloat16>(
        swizzled ? "bf16, swizzled" : "bf16", 64, 64,
        [=](auto* a, auto* b, float* out) { tiles<<<1, 128>>>(a, b, out, swizzled); });
  }
  test<float>("tf32", 8, 8, [](auto* a, auto* b, float* out) { small<<<1, 128>>>(a, b, out); });
  test<__nv_fp8_e4m3>("e4m3", 8, 32,
                      [](auto* a, auto* b, float* out) { small<<<1, 128>>>(a, b, out); });
  return failures();
}
