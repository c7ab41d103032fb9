// What `commbench sim bench` measures. generate.sh turns it into kernels.ptx.

#include <cuda_runtime.h>

/// 64 MB as float4, a grid-stride loop.
extern "C" __global__ void copy(const float4* source, float4* target, int count) {
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
    target[i] = source[i];
  }
}

struct Peers {
  const float4* input[8];
  unsigned* flags[8];
};

/// One-shot all-reduce of 8 devices: everybody reads everybody's input between two barriers.
extern "C" __global__ void all_reduce(const __grid_constant__ Peers peers, float4* output,
                                      int count, int rank) {
  unsigned* mine = peers.flags[rank];
  for (int phase = 1; phase <= 2; ++phase) {
    __syncthreads();
    if (threadIdx.x < 8) {
      unsigned* theirs = peers.flags[threadIdx.x] + blockIdx.x * 8 + rank;
      unsigned* own = mine + blockIdx.x * 8 + threadIdx.x;
      unsigned seen;
      asm volatile("st.release.sys.global.u32 [%0], %1;" ::"l"(theirs), "r"(phase) : "memory");
      do {
        asm volatile("ld.acquire.sys.global.u32 %0, [%1];" : "=r"(seen) : "l"(own) : "memory");
      } while (seen < phase);
    }
    __syncthreads();
    if (phase == 2) break;
    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
      float4 sum = {0, 0, 0, 0};
#pragma unroll
      for (int peer = 0; peer < 8; ++peer) {
        float4 value = peers.input[peer][i];
        sum.x += value.x;
        sum.y += value.y;
        sum.z += value.z;
        sum.w += value.w;
      }
      output[i] = sum;
    }
  }
}

/// C = A * B of n x n, n a multiple of 32, tiles of 32 x 32 in shared memory.
extern "C" __global__ void matmul_tiled(const float* a, const float* b, float* c, int n) {
  __shared__ float tile_a[32][32];
  __shared__ float tile_b[32][32];
  int row = blockIdx.y * 32 + threadIdx.y;
  int column = blockIdx.x * 32 + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += 32) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + column];
    __syncthreads();
    for (int i = 0; i < 32; ++i) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + column] = sum;
}

extern "C" __global__ void matmul_naive(const float* a, const float* b, float* c, int n) {
  int row = blockIdx.y * blockDim.y + threadIdx.y;
  int column = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; ++k) sum += a[row * n + k] * b[k * n + column];
  c[row * n + column] = sum;
}
