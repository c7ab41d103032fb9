// Narrow floating-point types.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>

__global__ void convert(const float* in, __nv_bfloat16* bf, __half* half, __nv_fp8_e4m3* fp8,
                        __nv_fp8_e5m2* fp8_wide, double* out, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  float x = in[i];
  bf[i] = __float2bfloat16(x);
  half[i] = __float2half(x * 0.333f);
  fp8[i] = __nv_fp8_e4m3(x + 1.0f);
  fp8_wide[i] = __nv_fp8_e5m2(x - 1e-3f);
  __nv_bfloat162 pair = __floats2bfloat162_rn(x, -x);
  pair = __hfma2(pair, pair, pair);
  __half2 halves = __hadd2(__float2half2_rn(x), __float2half2_rn(2.0f));
  double d = static_cast<double>(x) * 3.141592653589793 + __low2float(halves);
  out[i] = d + static_cast<float>(fp8[i]) + __bfloat162float(pair.x) + fminf(x, -0.0f);
}
