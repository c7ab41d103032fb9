#include "harness/rank/case_pool.h"

#include <cstring>

#include "base/check.h"

namespace cb::harness {

CasePool::CasePool(sim::RankClient& client, const tasks::Card& card, const tasks::Case& test_case,
                   int rank)
    : specs_(card.family->buffers(test_case)), rank_(static_cast<size_t>(rank)) {
  std::vector<bool> multicast;
  for (const tasks::BufferSpec& spec : specs_) {
    client.allocate(spec.label, spec.bytes, spec.peer_access, spec.sparse);
    multicast.push_back(spec.multicast);
  }
  shared_ = client.share(multicast);
  CB_CHECK(shared_.size() == multicast.size(), "the simulator shared another number of buffers");
}

ResolvedBlob CasePool::resolve(const tasks::Blob& blob) const {
  ResolvedBlob resolved;
  resolved.bytes = blob.bytes;
  for (const tasks::Blob::Patch& patch : blob.patches) {
    uint64_t address = 0;
    if (patch.target == tasks::Blob::Target::kBlob) {
      resolved.relocations.push_back({patch.at, patch.offset});
      continue;
    }
    const sim::RankClient::SharedBuffer& buffer = shared_[patch.buffer];
    if (patch.target == tasks::Blob::Target::kBuffer) {
      address = buffer.addresses[static_cast<size_t>(patch.rank)] + patch.offset;
    } else if (buffer.multicast != 0) {
      address = buffer.multicast + patch.offset;
    }
    std::memcpy(resolved.bytes.data() + patch.at, &address, sizeof address);
  }
  return resolved;
}

uint64_t CasePool::address(const tasks::Region& region) const {
  return shared_[region.buffer].addresses[rank_] + region.offset;
}

}  // namespace cb::harness
