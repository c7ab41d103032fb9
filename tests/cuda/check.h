#pragma once

// Checks of the test programs: each prints what failed and goes on; main returns `failures()`.

#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

inline int& failure_count() {
  static int count = 0;
  return count;
}

/// The exit code of a program: 0 when all checks held.
inline int failures() {
  if (failure_count() > 0) fprintf(stderr, "%d checks failed\n", failure_count());
  return failure_count() > 0 ? 1 : 0;
}

inline bool check_true(bool holds, const char* text, const char* file, int line) {
  if (!holds) {
    fprintf(stderr, "%s:%d: %s\n", file, line, text);
    ++failure_count();
  }
  return holds;
}

inline bool check_equal(long long actual, long long expected, const char* text, const char* file,
                        int line) {
  if (actual != expected) {
    fprintf(stderr, "%s:%d: %s is %lld (0x%llx), expected %lld\n", file, line, text, actual,
            static_cast<unsigned long long>(actual), expected);
    ++failure_count();
  }
  return actual == expected;
}

inline bool check_error(cudaError_t actual, cudaError_t expected, const char* text,
                        const char* file, int line) {
  if (actual != expected) {
    fprintf(stderr, "%s:%d: %s returned %s, expected %s\n", file, line, text,
            cudaGetErrorName(actual), cudaGetErrorName(expected));
    ++failure_count();
  }
  return actual == expected;
}

#define EXPECT(condition) check_true((condition), #condition, __FILE__, __LINE__)
#define EXPECT_EQUAL(actual, expected) \
  check_equal((long long)(actual), (long long)(expected), #actual, __FILE__, __LINE__)
#define EXPECT_ERROR(call, expected) check_error((call), (expected), #call, __FILE__, __LINE__)
#define EXPECT_OK(call) EXPECT_ERROR(call, cudaSuccess)

/// For what the rest of a program cannot do without.
#define REQUIRE_OK(call)           \
  do {                             \
    if (!EXPECT_OK(call)) exit(1); \
  } while (0)
