#include "tasks/content_check.h"

#include <algorithm>
#include <cstring>

#include "tasks/content.h"
#include "tasks/poison.h"

namespace cb::tasks {
namespace {

constexpr size_t kChunkBytes = size_t{64} << 10;
constexpr size_t kMaxMismatches = 8;
/// One byte equals another by chance too often; this many bytes in a row do not.
constexpr size_t kExplainBytes = 8;

}  // namespace

Comparison ContentCheck::compare(uint64_t offset, std::span<const std::byte> actual) const {
  size_t size = element_bytes(dtype_);
  Comparison result;
  result.elements = actual.size() / size;
  std::vector<std::byte> expected(std::min(actual.size(), kChunkBytes));
  for (size_t start = 0; start < actual.size(); start += expected.size()) {
    std::span<std::byte> piece(expected.data(), std::min(expected.size(), actual.size() - start));
    expected_->produce(offset + start, piece);
    if (std::memcmp(piece.data(), actual.data() + start, piece.size()) == 0) continue;
    for (size_t at = 0; at < piece.size(); at += size) {
      const std::byte* element = actual.data() + start + at;
      if (std::memcmp(piece.data() + at, element, size) == 0) continue;
      ++result.wrong;
      if (result.first.size() == kMaxMismatches) continue;
      result.first.push_back(
          {(offset + start + at) / size, format_element(dtype_, piece.data() + at),
           format_element(dtype_, element), explain(offset, actual, start + at)});
    }
  }
  return result;
}

std::string ContentCheck::explain(uint64_t offset, std::span<const std::byte> actual,
                                  size_t at) const {
  size_t bytes = std::max(element_bytes(dtype_), std::min(kExplainBytes, actual.size()));
  size_t start = std::min(at, actual.size() - bytes);
  std::vector<std::byte> candidate(bytes);
  for (const Suspect& suspect : suspects_) {
    if (offset + start + bytes > suspect.bytes) continue;
    suspect.content->produce(offset + start, candidate);
    if (std::memcmp(candidate.data(), actual.data() + start, bytes) == 0) return suspect.note;
  }
  return "";
}

std::vector<Suspect> common_suspects(const StepKey& key, int rank, const Region& region) {
  return {{"zero", std::make_shared<ZeroContent>(), region.bytes},
          {"poison: not written",
           part_of(poison(key, rank, region.buffer), region.offset, region.bytes), region.bytes}};
}

}  // namespace cb::tasks
