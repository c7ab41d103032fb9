#pragma once

// What programs about tensor maps share: the driver's functions as the runtime finds them, the
// instructions, and maps of dense tensors.

#include <cuda.h>

#include <cstdint>

#include "check.h"

/// A driver function of the types in cudaTypedefs.h.
template <class Function>
Function driver_function(const char* name) {
  void* found = nullptr;
  cudaDriverEntryPointQueryResult status = {};
  REQUIRE_OK(cudaGetDriverEntryPointByVersion(name, &found, 12080, cudaEnableDefault, &status));
  if (found == nullptr) exit(1);
  return reinterpret_cast<Function>(found);
}

inline bool has_tensor_maps() {
  int major = 0;
  REQUIRE_OK(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0));
  if (major < 9) fprintf(stderr, "needs tensor maps\n");
  return major >= 9;
}

/// A dense tensor and its box.
struct TensorShape {
  unsigned rank;
  cuuint64_t sizes[5];
  cuuint32_t box[5];
  cuuint32_t element_strides[5] = {1, 1, 1, 1, 1};
  CUtensorMapSwizzle swizzle = CU_TENSOR_MAP_SWIZZLE_NONE;
  CUtensorMapFloatOOBfill fill = CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE;
};

inline CUtensorMap tiled_map(CUtensorMapDataType type, unsigned element_bytes, void* data,
                             const TensorShape& shape) {
  static auto encode = driver_function<decltype(&cuTensorMapEncodeTiled)>("cuTensorMapEncodeTiled");
  cuuint64_t strides[4], bytes = element_bytes;
  for (unsigned i = 0; i + 1 < shape.rank; ++i) strides[i] = bytes *= shape.sizes[i];
  CUtensorMap map = {};
  EXPECT_EQUAL(encode(&map, type, shape.rank, data, shape.sizes, strides, shape.box,
                      shape.element_strides, CU_TENSOR_MAP_INTERLEAVE_NONE, shape.swizzle,
                      CU_TENSOR_MAP_L2_PROMOTION_NONE, shape.fill),
               CUDA_SUCCESS);
  return map;
}

__device__ inline unsigned shared_address(const void* pointer) {
  return static_cast<unsigned>(__cvta_generic_to_shared(pointer));
}

__device__ inline void init_barrier(uint64_t* barrier, unsigned count) {
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(shared_address(barrier)), "r"(count)
               : "memory");
  asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
}

__device__ inline void expect_bytes(uint64_t* barrier, unsigned bytes) {
  asm volatile(
      "mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(shared_address(barrier)),
      "r"(bytes)
      : "memory");
}

__device__ inline void wait_phase(uint64_t* barrier, unsigned parity) {
  asm volatile(
      "{\n.reg .pred done;\n"
      "again: mbarrier.try_wait.parity.shared::cta.b64 done, [%0], %1;\n"
      "@!done bra again;\n}" ::"r"(shared_address(barrier)),
      "r"(parity)
      : "memory");
}

__device__ inline void load_2d(void* to, const CUtensorMap* map, int x, int y, uint64_t* barrier) {
  asm volatile(
      "cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes"
      " [%0], [%1, {%2, %3}], [%4];" ::"r"(shared_address(to)),
      "l"(map), "r"(x), "r"(y), "r"(shared_address(barrier))
      : "memory");
}

__device__ inline void finish_stores() {
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;" ::: "memory");
}
