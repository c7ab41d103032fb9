// printf in device code: conversions, widths, strings, several threads.

#include <unistd.h>

#include <cstring>

#include "check.h"

__global__ void speak(int number, const char* unused) {
  printf("thread %d of %d: %5.2f %s %x\n", threadIdx.x, blockDim.x, number * 0.5, "text", number);
}

/// Conversions of each kind; `returned` gets what printf returns.
__global__ void convert(const char* text, int* returned) {
  __shared__ char word[8];
  for (int i = 0; i < 8; ++i) word[i] = "shared"[i < 6 ? i : 6];
  returned[0] = printf("[%5d|%-5d|%05d|%+d|% d|%i]\n", 42, 42, 42, 42, 42, -42);
  returned[1] = printf("[%x|%#X|%o|%u|%c%c|%%]\n", 255u, 255u, 8u, ~0u, 'o', 'k');
  returned[2] = printf("[%lld|%llx|%ld|%hd|%zu]\n", -1ll << 40, 1ull << 63, 7l, 5, sizeof(int));
  returned[3] = printf("[%e|%g|%.3f|%10.2f|%-8.1f|%a]\n", 1.5, 1e-9, 2.0 / 3, 3.14159, 2.5, 1.0);
  returned[4] = printf("[%s|%10s|%-6s|%.3s|%s]\n", text, text, "ab", "abcdef", word);
  returned[5] = printf("[%*d|%-*d|%.*f]\n", 6, 42, 4, 7, 2, 1.0 / 3);
  returned[6] = printf("no arguments\n");
  returned[7] = printf("[%p]\n", static_cast<const void*>(text));
}

void check_conversions(const char* output, const char* text, const int* returned) {
  char wanted[1000];
  char* to = wanted;
  to += sprintf(to, "[%5d|%-5d|%05d|%+d|% d|%i]\n", 42, 42, 42, 42, 42, -42);
  to += sprintf(to, "[%x|%#X|%o|%u|%c%c|%%]\n", 255u, 255u, 8u, ~0u, 'o', 'k');
  to += sprintf(to, "[%lld|%llx|%ld|%hd|%zu]\n", -1ll << 40, 1ull << 63, 7l, 5, sizeof(int));
  to += sprintf(to, "[%e|%g|%.3f|%10.2f|%-8.1f|%a]\n", 1.5, 1e-9, 2.0 / 3, 3.14159, 2.5, 1.0);
  to += sprintf(to, "[%s|%10s|%-6s|%.3s|%s]\n", "text", "text", "ab", "abcdef", "shared");
  to += sprintf(to, "[%*d|%-*d|%.*f]\n", 6, 42, 4, 7, 2, 1.0 / 3);
  to += sprintf(to, "no arguments\n");
  to += sprintf(to, "[%p]\n", static_cast<const void*>(text));
  if (!EXPECT(strcmp(output, wanted) == 0)) fprintf(stderr, "%s instead of\n%s", output, wanted);
  // Device code's printf returns the number of its arguments.
  constexpr int kArguments[] = {6, 6, 5, 6, 5, 6, 0, 1};
  for (int i = 0; i < 8; ++i) EXPECT_EQUAL(returned[i], kArguments[i]);
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

  char* words;
  int *returned, counts[8];
  REQUIRE_OK(cudaMalloc(&words, 8));
  REQUIRE_OK(cudaMalloc(&returned, sizeof counts));
  REQUIRE_OK(cudaMemcpy(words, "text", 5, cudaMemcpyHostToDevice));
  EXPECT(ftruncate(file, 0) == 0 && lseek(file, 0, SEEK_SET) == 0);
  dup2(file, STDOUT_FILENO);
  convert<<<1, 1>>>(words, returned);
  EXPECT_OK(cudaDeviceSynchronize());
  fflush(stdout);
  dup2(screen, STDOUT_FILENO);
  REQUIRE_OK(cudaMemcpy(counts, returned, sizeof counts, cudaMemcpyDeviceToHost));
  char output[1000] = {};
  EXPECT(pread(file, output, sizeof output - 1, 0) > 0);
  check_conversions(output, words, counts);
  return failures();
}
