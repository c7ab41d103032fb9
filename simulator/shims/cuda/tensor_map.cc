// Tensor maps: checked and written here, without the simulator.

#include "simulator/protocol/tensor_map.h"

#include <cstring>

#include "simulator/shims/client/devices.h"
#include "simulator/shims/cuda/driver.h"

using namespace cb::sim::client;
using cb::sim::TensorMap;
using cb::sim::TensorMode;
using cb::sim::TensorSwizzle;
using cb::sim::TensorType;

namespace {

constexpr uintptr_t kMapAlignment = 64;
constexpr uint64_t kLargestDimension = uint64_t{1} << 32;

/// What both modes of encoding are given.
struct Layout {
  CUtensorMapDataType type;
  uint32_t rank;
  void* address;
  const cuuint64_t* sizes;
  const cuuint64_t* strides;
  const cuuint32_t* element_strides;
  CUtensorMapInterleave interleave;
  CUtensorMapSwizzle swizzle;
  CUtensorMapL2promotion promotion;
  CUtensorMapFloatOOBfill fill;
};

bool is_aligned(const void* address, uintptr_t alignment) {
  return reinterpret_cast<uintptr_t>(address) % alignment == 0;
}

/// Numbers that do not fit into the map, which problem_of_map() would not see.
bool fits(const Layout& layout) {
  if (layout.type < 0 || layout.type > CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ) return false;
  if (layout.rank < 1 || layout.rank > TensorMap::kMaxRank) return false;
  if (layout.sizes == nullptr || layout.element_strides == nullptr) return false;
  if (layout.strides == nullptr && layout.rank > 1) return false;
  if (layout.interleave < 0 || layout.interleave > CU_TENSOR_MAP_INTERLEAVE_32B) return false;
  if (layout.swizzle < 0 || layout.swizzle > CU_TENSOR_MAP_SWIZZLE_128B_ATOM_64B) return false;
  if (layout.promotion < 0 || layout.promotion > CU_TENSOR_MAP_L2_PROMOTION_L2_256B) return false;
  if (layout.fill < 0 || layout.fill > CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA) {
    return false;
  }
  for (uint32_t i = 0; i < layout.rank; ++i) {
    if (layout.sizes[i] < 1 || layout.sizes[i] > kLargestDimension) return false;
    bool ignored = i == 0 && layout.interleave == CU_TENSOR_MAP_INTERLEAVE_NONE;
    if (!ignored && layout.element_strides[i] > TensorMap::kMaxElementStride) return false;
  }
  return true;
}

TensorMap encoded(const Layout& layout, TensorMode mode) {
  TensorMap map = {};
  map.magic = TensorMap::kMagic;
  map.mode = mode;
  map.type = static_cast<TensorType>(layout.type);
  map.rank = static_cast<uint8_t>(layout.rank);
  map.interleave = static_cast<uint8_t>(layout.interleave);
  map.swizzle = static_cast<TensorSwizzle>(layout.swizzle);
  map.fills_nan = static_cast<uint8_t>(layout.fill);
  map.l2_promotion = static_cast<uint8_t>(layout.promotion);
  map.address = reinterpret_cast<uint64_t>(layout.address);
  for (uint32_t i = 0; i < layout.rank; ++i) {
    map.last[i] = static_cast<uint32_t>(layout.sizes[i] - 1);
    map.element_strides[i] = static_cast<uint8_t>(layout.element_strides[i]);
    if (i + 1 < layout.rank) map.strides[i] = layout.strides[i];
  }
  if (map.interleave == 0) map.element_strides[0] = 1;
  return map;
}

/// What is right, but not here.
cudaError_t refusal_of(const TensorMap& map) {
  if (map.interleave != 0) return CB_REFUSE("CU_TENSOR_MAP_INTERLEAVE_16B and _32B");
  if (cb::sim::converts(map.type)) {
    return CB_REFUSE("CU_TENSOR_MAP_DATA_TYPE_FLOAT32_FTZ, _TFLOAT32 and _TFLOAT32_FTZ");
  }
  return cudaSuccess;
}

bool device_has_maps() { return device_info(this_thread().device()).compute_major >= 9; }

cudaError_t finish(CUtensorMap* target, const TensorMap& map) {
  if (cb::sim::problem_of_map(map) != nullptr) return cudaErrorInvalidValue;
  // Wide atoms came with compute capability 10.0.
  if (cb::sim::has_wide_atom(map.swizzle)) return cudaErrorInvalidValue;
  cudaError_t refusal = refusal_of(map);
  if (refusal == cudaSuccess) memcpy(target, &map, sizeof map);
  return refusal;
}

}  // namespace

static_assert(sizeof(CUtensorMap) == sizeof(TensorMap));

CB_DRIVER CUresult cuTensorMapEncodeTiled(
    CUtensorMap* target, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, const cuuint32_t* box,
    const cuuint32_t* element_strides, CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
    CUtensorMapL2promotion promotion, CUtensorMapFloatOOBfill fill) {
  return context_call([&] {
    if (!device_has_maps()) return cudaErrorNotSupported;
    Layout layout{type,       rank,    address,   sizes, strides, element_strides,
                  interleave, swizzle, promotion, fill};
    if (target == nullptr || box == nullptr || !is_aligned(target, kMapAlignment) ||
        !fits(layout)) {
      return cudaErrorInvalidValue;
    }
    TensorMap map = encoded(layout, TensorMode::kTiled);
    for (uint32_t i = 0; i < rank; ++i) {
      if (box[i] > TensorMap::kMaxBox) return cudaErrorInvalidValue;
      map.box[i] = static_cast<uint16_t>(box[i]);
    }
    return finish(target, map);
  });
}

CB_DRIVER CUresult cuTensorMapEncodeIm2col(
    CUtensorMap* target, CUtensorMapDataType type, cuuint32_t rank, void* address,
    const cuuint64_t* sizes, const cuuint64_t* strides, const int* lower, const int* upper,
    cuuint32_t channels, cuuint32_t pixels, const cuuint32_t* element_strides,
    CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle, CUtensorMapL2promotion promotion,
    CUtensorMapFloatOOBfill fill) {
  return context_call([&] {
    if (!device_has_maps()) return cudaErrorNotSupported;
    Layout layout{type,       rank,    address,   sizes, strides, element_strides,
                  interleave, swizzle, promotion, fill};
    if (target == nullptr || lower == nullptr || upper == nullptr ||
        !is_aligned(target, kMapAlignment) || !fits(layout) || rank < 3 ||
        channels > TensorMap::kMaxBox || pixels > TensorMap::kMaxPixels) {
      return cudaErrorInvalidValue;
    }
    TensorMap map = encoded(layout, TensorMode::kIm2col);
    map.box[0] = static_cast<uint16_t>(channels);
    map.box[1] = static_cast<uint16_t>(pixels);
    int limit = cb::sim::im2col_corner_limit(rank);
    for (uint32_t i = 0; i + 2 < rank; ++i) {
      if (lower[i] < -limit || lower[i] >= limit || upper[i] < -limit || upper[i] >= limit) {
        return cudaErrorInvalidValue;
      }
      map.box_lower[i] = static_cast<int16_t>(lower[i]);
      map.box_upper[i] = static_cast<int16_t>(upper[i]);
    }
    return finish(target, map);
  });
}

/// Only devices of compute capability 10.0 and later have this mode, and there are none here.
CB_DRIVER CUresult cuTensorMapEncodeIm2colWide(CUtensorMap*, CUtensorMapDataType, cuuint32_t, void*,
                                               const cuuint64_t*, const cuuint64_t*, int, int,
                                               cuuint32_t, cuuint32_t, const cuuint32_t*,
                                               CUtensorMapInterleave, CUtensorMapIm2ColWideMode,
                                               CUtensorMapSwizzle, CUtensorMapL2promotion,
                                               CUtensorMapFloatOOBfill) {
  return context_call([] { return CB_REFUSE("cuTensorMapEncodeIm2colWide below sm_100"); });
}

CB_DRIVER CUresult cuTensorMapReplaceAddress(CUtensorMap* target, void* address) {
  return context_call([&] {
    if (!device_has_maps()) return cudaErrorNotSupported;
    if (target == nullptr || !is_aligned(target, kMapAlignment)) return cudaErrorInvalidValue;
    TensorMap map;
    memcpy(&map, target, sizeof map);
    map.address = reinterpret_cast<uint64_t>(address);
    return finish(target, map);
  });
}
