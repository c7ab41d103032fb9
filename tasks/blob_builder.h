#pragma once

#include <cstring>
#include <type_traits>
#include <vector>

#include "tasks/family.h"

namespace cb::tasks {

/// Where a cb_span points: on rank r, `offsets[r]` bytes into its copy of `buffer`.
struct SpanTarget {
  const BufferSpec* spec = nullptr;
  uint32_t buffer = 0;
  std::vector<uint64_t> offsets;  ///< one per rank
  uint64_t bytes = 0;
};

/// Lays out a C struct for a candidate, and what it points to behind it.
class BlobBuilder {
 public:
  /// For `rank`; the struct occupies the first `struct_bytes`.
  BlobBuilder(int rank, size_t struct_bytes) : rank_(rank) { reserve(struct_bytes); }

  /// Appends zeroed bytes, 8-byte aligned; returns where they start.
  size_t reserve(size_t bytes);

  template <typename T>
  void put(size_t at, const T& value) {
    static_assert(std::is_trivially_copyable_v<T>);
    std::memcpy(blob_.bytes.data() + at, &value, sizeof(value));
  }

  /// The 8 bytes at `at` become the address of byte `offset` of this blob.
  void put_pointer(size_t at, size_t offset);
  /// Fills the cb_span at `at`; an array of peer addresses is appended where peers have access.
  void put_span(size_t at, const SpanTarget& target);

  Blob take() { return std::move(blob_); }

 private:
  int rank_;
  Blob blob_;
};

}  // namespace cb::tasks
