// What cuTensorMapEncodeTiled and its kin refuse.

#include <functional>

#include "tensor_maps.h"

struct Arguments {
  CUtensorMap* target;
  CUtensorMapDataType type = CU_TENSOR_MAP_DATA_TYPE_FLOAT16;
  cuuint32_t rank = 3;
  uintptr_t address = 1 << 20;
  cuuint64_t sizes[5] = {64, 64, 8, 1, 1};
  cuuint64_t strides[4] = {128, 8192, 65536, 65536};
  cuuint32_t box[5] = {64, 32, 1, 1, 1};
  cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
  CUtensorMapInterleave interleave = CU_TENSOR_MAP_INTERLEAVE_NONE;
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_128B;
  CUtensorMapL2promotion promotion = CU_TENSOR_MAP_L2_PROMOTION_L2_128B;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

CUresult encode(const Arguments& a) {
  static auto function =
      driver_function<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  return function(a.target, a.type, a.rank, reinterpret_cast<void*>(a.address), a.sizes, a.strides,
                  a.box, a.element_strides, a.interleave, a.swizzle, a.promotion, a.fill);
}

int main() {
  if (!has_tensor_maps()) return 77;
  REQUIRE_OK(cudaFree(nullptr));
  static CUtensorMap map;
  Arguments right;
  right.target = &map;
  EXPECT_EQUAL(encode(right), CUDA_SUCCESS);
  right.sizes[1] = cuuint64_t(1) << 32;
  right.strides[1] = (cuuint64_t(1) << 40) - 16;
  right.box[1] = 256;
  right.element_strides[0] = 0;  // ignored
  right.element_strides[1] = 8;
  EXPECT_EQUAL(encode(right), CUDA_SUCCESS);

  const std::function<void(Arguments&)> wrong[] = {
      [](Arguments& a) { a.target = nullptr; },
      [](Arguments& a) { a.target = reinterpret_cast<CUtensorMap*>(uintptr_t(&map) + 32); },
      [](Arguments& a) { a.type = static_cast<CUtensorMapDataType>(99); },
      [](Arguments& a) { a.rank = 0; },
      [](Arguments& a) { a.rank = 6; },
      [](Arguments& a) { a.address += 8; },
      [](Arguments& a) { a.sizes[0] = 0; },
      [](Arguments& a) { a.sizes[2] = (cuuint64_t(1) << 32) + 1; },
      [](Arguments& a) { a.strides[0] = 136; },
      [](Arguments& a) { a.strides[1] = cuuint64_t(1) << 40; },
      [](Arguments& a) { a.box[1] = 0; },
      [](Arguments& a) { a.box[1] = 257; },
      [](Arguments& a) { a.box[0] = 60; },   // 120 bytes
      [](Arguments& a) { a.box[0] = 128; },  // more than the swizzle
      [](Arguments& a) { a.element_strides[1] = 0; },
      [](Arguments& a) { a.element_strides[2] = 9; },
      [](Arguments& a) { a.interleave = static_cast<CUtensorMapInterleave>(3); },
      [](Arguments& a) { a.interleave = CU_TENSOR_MAP_INTERLEAVE_32B; },  // needs a 32-byte swizzle
      [](Arguments& a) {
        a.interleave = CU_TENSOR_MAP_INTERLEAVE_16B;
        a.rank = 2;
      },
      [](Arguments& a) { a.swizzle = static_cast<CUtensorMapSwizzle>(7); },
      [](Arguments& a) { a.promotion = static_cast<CUtensorMapL2promotion>(4); },
      [](Arguments& a) { a.fill = static_cast<CUtensorMapFloatOOBfill>(2); },
      [](Arguments& a) {
        a.type = CU_TENSOR_MAP_DATA_TYPE_UINT16;
        a.fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA;
      },
  };
  int number = 0;
  for (const auto& change : wrong) {
    Arguments arguments;
    arguments.target = &map;
    change(arguments);
    CUresult result = encode(arguments);
    if (!EXPECT_EQUAL(result, CUDA_ERROR_INVALID_VALUE)) fprintf(stderr, "case %d\n", number);
    ++number;
  }

  auto replace = driver_function<decltype(&cuTensorMapReplaceAddress)>("cuTensorMapReplaceAddress");
  EXPECT_EQUAL(encode(right), CUDA_SUCCESS);
  EXPECT_EQUAL(replace(&map, reinterpret_cast<void*>(1 << 21)), CUDA_SUCCESS);
  EXPECT_EQUAL(replace(&map, reinterpret_cast<void*>((1 << 21) + 8)), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(replace(nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);

  auto im2col = driver_function<decltype(&cuTensorMapEncodeIm2col)>("cuTensorMapEncodeIm2col");
  cuuint64_t sizes[] = {64, 16, 16, 4}, strides[] = {128, 2048, 32768};
  cuuint32_t ones[] = {1, 1, 1, 1};
  auto encode_im2col = [&](cuuint32_t rank, int corner, unsigned channels, unsigned pixels) {
    int lower[] = {corner, -1}, upper[] = {-1, -1};
    return im2col(&map, CU_TENSOR_MAP_DATA_TYPE_FLOAT16, rank, reinterpret_cast<void*>(1 << 20),
                  sizes, strides, lower, upper, channels, pixels, ones,
                  CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
  };
  EXPECT_EQUAL(encode_im2col(4, -1, 64, 128), CUDA_SUCCESS);
  EXPECT_EQUAL(encode_im2col(2, -1, 64, 128), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(encode_im2col(4, -129, 64, 128), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(encode_im2col(4, 20, 64, 128), CUDA_ERROR_INVALID_VALUE);  // an empty box
  EXPECT_EQUAL(encode_im2col(4, -1, 257, 128), CUDA_ERROR_INVALID_VALUE);
  EXPECT_EQUAL(encode_im2col(4, -1, 64, 1025), CUDA_ERROR_INVALID_VALUE);
  return failures();
}
