#include "tasks/blob_builder.h"

#include <commbench/task.h>

#include <cstddef>

namespace cb::tasks {
namespace {

constexpr size_t kAlignment = 8;

uint32_t position(size_t at) { return static_cast<uint32_t>(at); }

}  // namespace

size_t BlobBuilder::reserve(size_t bytes) {
  size_t start = (blob_.bytes.size() + kAlignment - 1) / kAlignment * kAlignment;
  blob_.bytes.resize(start + bytes);
  return start;
}

void BlobBuilder::put_pointer(size_t at, size_t offset) {
  blob_.patches.push_back({position(at), Blob::Target::kBlob, 0, 0, offset});
}

void BlobBuilder::put_span(size_t at, const SpanTarget& target) {
  put(at + offsetof(cb_span, bytes), static_cast<size_t>(target.bytes));
  auto own = static_cast<size_t>(rank_);
  blob_.patches.push_back({position(at + offsetof(cb_span, local)), Blob::Target::kBuffer,
                           target.buffer, rank_, target.offsets[own]});
  if (target.spec->multicast) {
    blob_.patches.push_back({position(at + offsetof(cb_span, multicast)), Blob::Target::kMulticast,
                             target.buffer, rank_, target.offsets[own]});
  }
  if (!target.spec->peer_access) return;
  size_t peers = reserve(target.offsets.size() * sizeof(void*));
  put_pointer(at + offsetof(cb_span, peer), peers);
  for (size_t r = 0; r < target.offsets.size(); ++r) {
    blob_.patches.push_back({position(peers + r * sizeof(void*)), Blob::Target::kBuffer,
                             target.buffer, static_cast<int32_t>(r), target.offsets[r]});
  }
}

}  // namespace cb::tasks
