// Grids and blocks of every shape, and parameters of every kind.

#include <cstring>
#include <vector>

#include "check.h"

struct Large {
  double numbers[30];
  char tail[3];
};

__global__ void mark(unsigned* counts) {
  unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  atomicAdd(&counts[block * blockDim.x * blockDim.y * blockDim.z + thread], block * 1000 + thread);
}

__global__ void parameters(char a, double b, short c, Large large, const __grid_constant__ int d,
                           float2 e, double* out) {
  out[0] = a;
  out[1] = b;
  out[2] = c;
  out[3] = large.numbers[29];
  out[4] = large.tail[2];
  out[5] = d;
  out[6] = e.x;
  out[7] = e.y;
}

template <class... Args>
__global__ void many(int* out, Args... args) {
  *out = (args + ...);
}

int main() {
  for (dim3 grid : {dim3(1), dim3(7), dim3(3, 5), dim3(2, 3, 4)}) {
    for (dim3 block : {dim3(1), dim3(33), dim3(16, 4), dim3(4, 3, 5), dim3(1, 1, 64)}) {
      size_t blocks = size_t{grid.x} * grid.y * grid.z;
      size_t threads = size_t{block.x} * block.y * block.z;
      std::vector<unsigned> host(blocks * threads);
      unsigned* counts;
      REQUIRE_OK(cudaMalloc(&counts, host.size() * sizeof(unsigned)));
      REQUIRE_OK(cudaMemset(counts, 0, host.size() * sizeof(unsigned)));
      mark<<<grid, block>>>(counts);
      EXPECT_OK(
          cudaMemcpy(host.data(), counts, host.size() * sizeof(unsigned), cudaMemcpyDeviceToHost));
      bool right = true;
      for (size_t at = 0; at < host.size(); ++at) {
        right = right && host[at] == at / threads * 1000 + at % threads;
      }
      EXPECT(right);
      EXPECT_OK(cudaFree(counts));
    }
  }

  double *out, results[8];
  REQUIRE_OK(cudaMalloc(&out, sizeof results));
  Large large;
  for (int at = 0; at < 30; ++at) large.numbers[at] = at * 1.5;
  memcpy(large.tail, "\x11\x22\x33", 3);
  parameters<<<1, 1>>>(-7, 2.25, -300, large, 123456, make_float2(0.5f, -8.0f), out);
  REQUIRE_OK(cudaMemcpy(results, out, sizeof results, cudaMemcpyDeviceToHost));
  const double expected[8] = {-7, 2.25, -300, 43.5, 0x33, 123456, 0.5, -8};
  for (int at = 0; at < 8; ++at) EXPECT(results[at] == expected[at]);

  int* sum;
  int total = 0;
  REQUIRE_OK(cudaMalloc(&sum, sizeof(int)));
  many<<<1, 1>>>(sum, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16);
  REQUIRE_OK(cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(total, 136);

  // The same through cudaLaunchKernelEx, and with parameters by address.
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(1);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeProgrammaticStreamSerialization;
  attribute.val.programmaticStreamSerializationAllowed = 1;
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_OK(cudaLaunchKernelEx(&config, many<int, int>, sum, 40, 2));
  REQUIRE_OK(cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(total, 42);
  int first = 100, second = 11;
  void* args[] = {&sum, &first, &second};
  EXPECT_OK(cudaLaunchKernel(many<int, int>, dim3(1), dim3(1), args, 0, 0));
  REQUIRE_OK(cudaMemcpy(&total, sum, sizeof total, cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(total, 111);
  EXPECT_OK(cudaFree(out));
  EXPECT_OK(cudaFree(sum));
  return failures();
}
