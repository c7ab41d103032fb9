// __trap() ends the kernel and breaks the context.

#include "check.h"

__global__ void stop() { __trap(); }

int main() {
  stop<<<1, 1>>>();
  EXPECT_OK(cudaGetLastError());
  EXPECT_ERROR(cudaDeviceSynchronize(), cudaErrorLaunchFailure);
  EXPECT_ERROR(cudaGetLastError(), cudaErrorLaunchFailure);
  return failures();
}
