// printf in device code: conversions, widths, strings, several threads.

#include <unistd.h>

#include <cstring>

#include "check.h"

__global__ void speak(int number, const char* unused) {
  printf("thread %d of %d: %5.2f %s %x\n", threadIdx.x, blockDim.x, number * 0.5, "text", number);
}

int main() {
  char path[] = "/tmp/device_printf_XXXXXX";
  int file = mkstemp(path);
  if (!EXPECT(file >= 0)) return failures();
  unlink(path);
  int screen = dup(STDOUT_FILENO);
  dup2(file, STDOUT_FILENO);
  speak<<<1, 2>>>(31, nullptr);
  EXPECT_OK(cudaDeviceSynchronize());
  fflush(stdout);
  dup2(screen, STDOUT_FILENO);
  char text[200] = {};
  EXPECT(pread(file, text, sizeof text - 1, 0) > 0);
  EXPECT(strstr(text, "thread 0 of 2: 15.50 text 1f\n") != nullptr);
  EXPECT(strstr(text, "thread 1 of 2: 15.50 text 1f\n") != nullptr);
  EXPECT_EQUAL(strlen(text), 58);
  return failures();
}
