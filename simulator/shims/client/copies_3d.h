#pragma once

#include "simulator/shims/client/copies.h"

namespace cb::sim::client {

/// One side of a three-dimensional copy: rows of `pitch` bytes, `rows` of them in a slice.
struct Slices {
  void* base = nullptr;  ///< of the first byte that is copied
  size_t pitch = 0;
  size_t rows = 0;
};

struct Volume {
  size_t width_bytes = 0;
  size_t height = 0;
  size_t depth = 0;

  bool is_empty() const { return width_bytes == 0 || height == 0 || depth == 0; }
};

/// The first byte at (x bytes, y, z) of pitched memory; false when the numbers are too large.
bool locate(void* base, size_t pitch, size_t rows, size_t x, size_t y, size_t z, void** first);

cudaError_t copy_volume(const Slices& dst, const Slices& src, const Volume& volume,
                        cudaMemcpyKind kind, const CopyMode& mode);
cudaError_t fill_volume(const Slices& dst, int value, const Volume& volume, const CopyMode& mode);

}  // namespace cb::sim::client
