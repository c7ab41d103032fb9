#pragma once

// Copies and fills. Memory outside the window is the program's own: its bytes travel through the
// connection's staging memory, piece by piece. Memory inside the window is the daemon's.

#include <cuda_runtime_api.h>

#include <cstdint>

#include "simulator/shims/client/streams.h"

namespace cb::sim::client {

/// How a copy or fill is issued.
struct CopyMode {
  Stream stream;
  bool async = false;      ///< a cuda*Async function
  bool peer = false;       ///< cudaMemcpyPeer*
  bool continues = false;  ///< a further part of one call, which pays no fixed cost
};

/// One row is the plain cudaMemcpy; pitches do not matter then.
struct CopyShape {
  size_t width_bytes = 0;
  size_t rows = 1;
  size_t dst_pitch = 0;
  size_t src_pitch = 0;
};

/// cudaErrorInvalidMemcpyDirection for a kind that does not exist, cudaErrorInvalidValue when the
/// addresses are not of that kind.
cudaError_t check_direction(const void* dst, const void* src, cudaMemcpyKind kind);

cudaError_t copy(void* dst, const void* src, const CopyShape& shape, cudaMemcpyKind kind,
                 const CopyMode& mode);

/// Fills `rows` rows of `elements` elements of `element_bytes` (1, 2 or 4).
struct Fill {
  void* dst = nullptr;
  uint32_t value = 0;
  uint32_t element_bytes = 1;
  size_t elements = 0;
  size_t rows = 1;
  size_t pitch_bytes = 0;
};
cudaError_t fill(const Fill& fill, const CopyMode& mode);

}  // namespace cb::sim::client
