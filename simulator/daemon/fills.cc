#include <algorithm>
#include <cstring>

#include "base/random.h"
#include "simulator/daemon/job.h"

namespace cb::sim {
namespace {

/// Visits the range in pieces of the stream's bytes: visit(offset, piece, bytes) until it returns
/// false.
template <class Visit>
void for_each_piece(uint64_t bytes, uint64_t seed, uint64_t skip_bytes, Visit visit) {
  constexpr uint64_t kWords = 512;
  CounterRandom random(seed);
  uint64_t words[kWords];
  uint64_t word = skip_bytes / 8, inside = skip_bytes % 8;
  for (uint64_t done = 0; done < bytes;) {
    for (uint64_t at = 0; at < kWords; ++at) words[at] = random.value(word + at);
    uint64_t piece = std::min(bytes - done, sizeof words - inside);
    if (!visit(done, reinterpret_cast<const std::byte*>(words) + inside, piece)) return;
    done += piece;
    word += kWords;
    inside = 0;
  }
}

}  // namespace

void fill_words(std::byte* at, uint64_t bytes, uint64_t seed, uint64_t skip_bytes) {
  for_each_piece(bytes, seed, skip_bytes,
                 [at](uint64_t offset, const std::byte* piece, uint64_t piece_bytes) {
                   std::memcpy(at + offset, piece, piece_bytes);
                   return true;
                 });
}

uint64_t compare_words(const std::byte* at, uint64_t bytes, uint64_t seed, uint64_t skip_bytes) {
  uint64_t equal = bytes;
  for_each_piece(bytes, seed, skip_bytes,
                 [&](uint64_t offset, const std::byte* piece, uint64_t piece_bytes) {
                   auto [ours, theirs] = std::mismatch(piece, piece + piece_bytes, at + offset);
                   if (ours == piece + piece_bytes) return true;
                   equal = offset + static_cast<uint64_t>(ours - piece);
                   return false;
                 });
  return equal;
}

}  // namespace cb::sim
