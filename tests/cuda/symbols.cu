// Variables of device code: addresses, sizes, copies to and from them.

#include "check.h"

__constant__ int coefficients[8];
__device__ float state[4] = {1.0f, 2.0f, 3.0f, 4.0f};
__device__ unsigned long long counter;

__global__ void combine(float* out) {
  int at = threadIdx.x;
  out[at] = state[at] * coefficients[at];
  state[at] += 10.0f;
  atomicAdd(&counter, 2);
}

int main() {
  int values[8] = {5, 6, 7, 8, 9, 10, 11, 12};
  REQUIRE_OK(cudaMemcpyToSymbol(coefficients, values, sizeof values));
  float *out, results[4];
  REQUIRE_OK(cudaMalloc(&out, sizeof results));
  combine<<<1, 4>>>(out);
  REQUIRE_OK(cudaMemcpy(results, out, sizeof results, cudaMemcpyDeviceToHost));
  for (int at = 0; at < 4; ++at) EXPECT_EQUAL(results[at], (at + 1) * (at + 5));

  float after[2];
  EXPECT_OK(cudaMemcpyFromSymbol(after, state, sizeof after, 2 * sizeof(float)));
  EXPECT_EQUAL(after[0], 13);
  EXPECT_EQUAL(after[1], 14);
  unsigned long long count = 0;
  EXPECT_OK(cudaMemcpyFromSymbol(&count, counter, sizeof count));
  EXPECT_EQUAL(count, 8);

  int one = 100;
  EXPECT_OK(cudaMemcpyToSymbolAsync(coefficients, &one, sizeof one, 3 * sizeof one,
                                    cudaMemcpyHostToDevice, 0));
  int back[8];
  EXPECT_OK(cudaMemcpyFromSymbol(back, coefficients, sizeof back));
  EXPECT_EQUAL(back[2], 7);
  EXPECT_EQUAL(back[3], 100);

  void* address = nullptr;
  size_t bytes = 0;
  EXPECT_OK(cudaGetSymbolAddress(&address, state));
  EXPECT_OK(cudaGetSymbolSize(&bytes, state));
  EXPECT_EQUAL(bytes, sizeof(float) * 4);
  float through_address = 0;
  EXPECT_OK(cudaMemcpy(&through_address, address, sizeof(float), cudaMemcpyDeviceToHost));
  EXPECT_EQUAL(through_address, 11);

  EXPECT_ERROR(cudaMemcpyToSymbol(coefficients, values, sizeof values, 4), cudaErrorInvalidValue);
  EXPECT_ERROR(cudaMemcpyToSymbol(coefficients, values, 4, 0, cudaMemcpyDeviceToHost),
               cudaErrorInvalidMemcpyDirection);
  EXPECT_ERROR(cudaGetSymbolAddress(&address, static_cast<const void*>(&bytes)),
               cudaErrorInvalidSymbol);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorInvalidSymbol);
  EXPECT_OK(cudaFree(out));
  return failures();
}
