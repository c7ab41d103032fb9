// Kernels that differ in what they need of a multiprocessor.
__global__ void plain(float* a) { a[threadIdx.x] += 1; }

__global__ void shared_400(float* a) {
  __shared__ float s[100];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[0] = s[99 - threadIdx.x];
}

__global__ void __launch_bounds__(128, 4) barriers_8(float* a) {
  a[threadIdx.x] = 1;
  asm volatile("bar.sync 3, 64;");
  a[5] = 2;
  asm volatile("bar.sync 7, 64;");
}

__global__ void stack_256(float* a, int n) {
  float x[64];
  for (int i = 0; i < 64; i++) x[i] = a[i * n];
  x[n] += 1;
  a[0] = x[n * 3 & 63];
}

__device__ __noinline__ float callee(float* a, int n) {
  float x[32];
  for (int i = 0; i < 32; i++) x[i] = a[i * n];
  x[n] += 1;
  return x[n * 3 & 31];
}

__global__ void calls(float* a, int n) { a[1] = callee(a, n); }

__global__ void __launch_bounds__(1024, 2) spills(float* a) {
  float x[40];
#pragma unroll
  for (int i = 0; i < 40; i++) x[i] = a[i * threadIdx.x];
#pragma unroll
  for (int i = 0; i < 40; i++) a[i + threadIdx.x] = x[i] * x[(i * 7 + 1) % 40];
}

struct Large {
  int a[500];
};
__global__ void parameters_2008(const __grid_constant__ Large s, float* a) {
  a[0] = s.a[threadIdx.x];
}

template <int kRegisters>
__global__ void many(double* a) {
  double x[kRegisters];
#pragma unroll
  for (int i = 0; i < kRegisters; i++) x[i] = a[i];
  __syncthreads();
#pragma unroll
  for (int i = 0; i < kRegisters; i++) a[(i * 5) % kRegisters] = x[i] * x[(i + 1) % kRegisters];
}
template __global__ void many<8>(double*);
template __global__ void many<32>(double*);
