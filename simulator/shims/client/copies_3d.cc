#include "simulator/shims/client/copies_3d.h"

namespace cb::sim::client {
namespace {

/// Whether all rows of all slices have the same distance.
bool is_even(const Slices& side, const Volume& volume) {
  return volume.depth == 1 || side.rows == volume.height;
}

bool step_of(const Slices& side, size_t* step) {
  return !__builtin_mul_overflow(side.pitch, side.rows, step);
}

bool fits(const Slices& side, const Volume& volume) {
  return side.pitch >= volume.width_bytes && (volume.depth == 1 || side.rows >= volume.height);
}

}  // namespace

bool locate(void* base, size_t pitch, size_t rows, size_t x, size_t y, size_t z, void** first) {
  size_t lines, bytes;
  if (__builtin_mul_overflow(rows, z, &lines) || __builtin_add_overflow(lines, y, &lines) ||
      __builtin_mul_overflow(lines, pitch, &bytes) || __builtin_add_overflow(bytes, x, &bytes)) {
    return false;
  }
  *first = base == nullptr ? nullptr : static_cast<char*>(base) + bytes;
  return true;
}

cudaError_t copy_volume(const Slices& dst, const Slices& src, const Volume& volume,
                        cudaMemcpyKind kind, const CopyMode& mode) {
  if (volume.is_empty()) return cudaSuccess;
  if (!fits(dst, volume) || !fits(src, volume)) return cudaErrorInvalidPitchValue;
  CopyShape shape;
  shape.width_bytes = volume.width_bytes;
  shape.rows = volume.height;
  shape.dst_pitch = dst.pitch;
  shape.src_pitch = src.pitch;
  if (is_even(dst, volume) && is_even(src, volume)) {
    if (__builtin_mul_overflow(volume.height, volume.depth, &shape.rows)) {
      return cudaErrorInvalidValue;
    }
    return copy(dst.base, src.base, shape, kind, mode);
  }
  size_t dst_step, src_step;
  if (!step_of(dst, &dst_step) || !step_of(src, &src_step)) return cudaErrorInvalidValue;
  CopyMode part = mode;
  for (size_t slice = 0; slice < volume.depth; ++slice) {
    cudaError_t error = copy(static_cast<char*>(dst.base) + slice * dst_step,
                             static_cast<char*>(src.base) + slice * src_step, shape, kind, part);
    if (error != cudaSuccess) return error;
    part.continues = true;
  }
  return cudaSuccess;
}

cudaError_t fill_volume(const Slices& dst, int value, const Volume& volume, const CopyMode& mode) {
  if (volume.is_empty()) return cudaSuccess;
  if (!fits(dst, volume)) return cudaErrorInvalidValue;
  size_t step;
  if (!step_of(dst, &step)) return cudaErrorInvalidValue;
  Fill part;
  part.dst = dst.base;
  part.value = static_cast<uint32_t>(value) & 0xff;
  part.elements = volume.width_bytes;
  part.rows = volume.height;
  part.pitch_bytes = dst.pitch;
  if (is_even(dst, volume)) {
    if (__builtin_mul_overflow(volume.height, volume.depth, &part.rows)) {
      return cudaErrorInvalidValue;
    }
    return fill(part, mode);
  }
  for (size_t slice = 0; slice < volume.depth; ++slice) {
    part.dst = static_cast<char*>(dst.base) + slice * step;
    cudaError_t error = fill(part, mode);
    if (error != cudaSuccess) return error;
  }
  return cudaSuccess;
}

}  // namespace cb::sim::client
