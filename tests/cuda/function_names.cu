// Names and parameters of kernels, as cudaFuncGetName and cudaFuncGetParamInfo tell them.

#include <cstring>

#include "check.h"

struct Shape {
  int rows;
  double scale;
  char tag;
};

template <class T>
__global__ void templated(T* out, T value) {
  *out = value;
}
extern "C" __global__ void plain(char flag, int* out, Shape shape, short last) {
  *out = flag + shape.rows + last;
}
__global__ void no_parameters() {}

static void expect_parameter(const void* kernel, size_t index, size_t offset, size_t bytes) {
  size_t its_offset = 0, its_bytes = 0;
  EXPECT_OK(cudaFuncGetParamInfo(kernel, index, &its_offset, &its_bytes));
  EXPECT_EQUAL(its_offset, offset);
  EXPECT_EQUAL(its_bytes, bytes);
}

int main() {
  const char* name = nullptr;
  EXPECT_OK(cudaFuncGetName(&name, reinterpret_cast<void*>(plain)));
  EXPECT(name != nullptr && strcmp(name, "plain") == 0);
  EXPECT_OK(cudaFuncGetName(&name, reinterpret_cast<void*>(templated<float>)));
  EXPECT(name != nullptr && strcmp(name, "_Z9templatedIfEvPT_S0_") == 0);
  EXPECT_ERROR(cudaFuncGetName(nullptr, reinterpret_cast<void*>(plain)), cudaErrorInvalidValue);

  auto* kernel = reinterpret_cast<void*>(plain);
  expect_parameter(kernel, 0, 0, 1);
  expect_parameter(kernel, 1, 8, 8);
  expect_parameter(kernel, 2, 16, sizeof(Shape));
  expect_parameter(kernel, 3, 40, 2);
  size_t offset = 0;
  EXPECT_OK(cudaFuncGetParamInfo(kernel, 1, &offset, nullptr));
  EXPECT_EQUAL(offset, 8);
  EXPECT_ERROR(cudaFuncGetParamInfo(kernel, 4, &offset, nullptr), cudaErrorInvalidValue);
  expect_parameter(reinterpret_cast<void*>(templated<double>), 1, 8, 8);
  EXPECT_ERROR(cudaFuncGetParamInfo(reinterpret_cast<void*>(no_parameters), 0, &offset, nullptr),
               cudaErrorInvalidValue);
  int not_a_kernel = 0;
  EXPECT_ERROR(cudaFuncGetName(&name, &not_a_kernel), cudaErrorInvalidDeviceFunction);
  return failures();
}
