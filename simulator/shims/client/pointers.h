#pragma once

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/protocol/protocol.h"

namespace cb::sim::client {

struct PointerInfo {
  PointerKind kind = PointerKind::kUnknown;
  int device = 0;
  uint64_t base = 0;  ///< of the allocation
  uint64_t bytes = 0;
  uint64_t flags = 0;  ///< PointerFlag bits
};

/// What an address points to; kUnknown for memory of the program itself.
cudaError_t pointer_info(uint64_t address, PointerInfo* info);

cudaError_t pointer_attributes(cudaPointerAttributes* attributes, const void* pointer);

}  // namespace cb::sim::client
