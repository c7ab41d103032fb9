// alloca in device code: memory of a size that each thread chooses, gone when its function returns.

#include <alloca.h>

#include "array.h"

__device__ __noinline__ int sum_of_squares(int count) {
  int* numbers = static_cast<int*>(alloca(count * sizeof(int)));
  for (int i = 0; i < count; ++i) numbers[i] = i * i;
  int sum = 0;
  for (int i = count; i-- > 0;) sum += numbers[i];
  return sum;
}

__global__ void sum(int* out) {
  // Many calls need no more memory than one.
  int total = 0;
  for (int round = 0; round < 200; ++round) total += sum_of_squares(threadIdx.x + 1);
  out[threadIdx.x] = total;
}

__global__ void reverse(const char* text, char* out, int length) {
  char* copy = static_cast<char*>(alloca(length));
  for (int i = 0; i < length; ++i) copy[i] = text[i];
  for (int i = 0; i < length; ++i) out[threadIdx.x * length + i] = copy[length - 1 - i];
}

int main() {
  Array<int> out(32);
  sum<<<1, 32>>>(out.device);
  out.to_host();
  for (int n = 0; n < 32; ++n) EXPECT_EQUAL(out.host[n], 200 * (n * (n + 1) * (2 * n + 1) / 6));

  const char text[] = "a stack of letters";
  constexpr int kLength = sizeof text - 1;
  Array<char> in(kLength), reversed(2 * kLength);
  memcpy(in.host.data(), text, kLength);
  in.to_device();
  reverse<<<1, 2>>>(in.device, reversed.device, kLength);
  reversed.to_host();
  for (int i = 0; i < 2 * kLength; ++i) {
    EXPECT_EQUAL(reversed.host[i], text[kLength - 1 - i % kLength]);
  }
  return failures();
}
