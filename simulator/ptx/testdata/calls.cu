// Calls: printf, assert, recursion, function pointers, structures by value, launch bounds.
#include <cassert>
#include <cstdio>

struct Sample {
  double value;
  int tag;
};

using Reduce = Sample (*)(Sample, float);

__device__ __noinline__ Sample add(Sample s, float x) { return {s.value + x, s.tag + 1}; }
__device__ __noinline__ Sample scale(Sample s, float x) { return {s.value * x, s.tag - 1}; }
__device__ __noinline__ int factorial(int n) { return n < 2 ? 1 : n * factorial(n - 1); }
__device__ Reduce choice = add;

__global__ void __launch_bounds__(256, 2) reduce(Sample* samples, int n, int which) {
  Reduce f = which ? scale : choice;
  Sample s = samples[threadIdx.x];
  for (int i = 0; i < n; ++i) s = f(s, static_cast<float>(i));
  assert(s.tag >= 0);
  if (threadIdx.x == 0) printf("block %d: %f %d\n", blockIdx.x, s.value, factorial(n));
  samples[threadIdx.x] = s;
}

__global__ void __cluster_dims__(2, 1, 1) spill(float* data, int n) {
  float local[16];
#pragma unroll
  for (int i = 0; i < 16; ++i) local[i] = data[i];
  for (int i = 0; i < n; ++i) local[data[i] > 0 ? i & 15 : 3] += 0.5f;
  switch (n) {
    case 0:
      data[0] = local[1];
      break;
    case 1:
      data[1] = local[2] * 3;
      break;
    case 2:
      data[2] = local[3] - 1;
      break;
    case 3:
      data[3] = sqrtf(local[4]);
      break;
    case 4:
      data[4] = local[5] / local[6];
      break;
    default:
      data[n] = local[n & 15];
  }
}
