#pragma once

#include <emmintrin.h>

#include <bit>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/check.h"

namespace cb::sim {

/// Which 32-byte sectors of which 128-byte lines a cache holds. Four ways; a line that is used
/// moves towards the front of its set, and new ones push out the last.
class LineCache {
 public:
  static constexpr unsigned kLineBits = 7;

  /// A line, and where it belongs.
  struct Place {
    uint32_t name = 0;
    uint32_t set = 0;
  };

  LineCache() = default;
  explicit LineCache(uint64_t bytes) : sets_(bytes >> kLineBits >> 2) {
    CB_CHECK(!sets_.empty() && sets_.size() < (uint64_t{1} << 32), "a cache has a set");
    inverse_ = ~uint64_t{0} / sets_.size() + 1;
  }

  Place place_of(uint64_t line) const {
    // Arenas of ranks lie 2^30 lines apart, so that the multiple of the upper bits keeps equal
    // places of different ranks apart.
    auto name = static_cast<uint32_t>(line + (line >> 32) * 0x9e3779b1u);
    // name % sets_.size(), so that lines in a row have sets in a row; without a division (Lemire,
    // Kaser, Kurz 2019).
    uint64_t fraction = inverse_ * name;
    auto set = static_cast<unsigned __int128>(fraction) * sets_.size() >> 64;
    return {name, static_cast<uint32_t>(set)};
  }
  /// The next line.
  void advance(Place& place) const {
    ++place.name;
    if (++place.set == sets_.size()) place.set = 0;
  }

  /// Which of the `wanted` sectors (four bits) of the line are not there; they are afterwards.
  uint32_t fetch(Place place, uint32_t wanted) {
    Set& set = sets_[place.set];
    if (set.generation != generation_) [[unlikely]] {
      set = {.generation = generation_};
    }
    __m128i names = _mm_loadu_si128(reinterpret_cast<const __m128i*>(set.names));
    __m128i equal = _mm_cmpeq_epi32(names, _mm_set1_epi32(static_cast<int>(place.name)));
    auto found = static_cast<uint32_t>(_mm_movemask_ps(_mm_castsi128_ps(equal)));
    if (found != 0) {
      auto way = static_cast<unsigned>(std::countr_zero(found));
      uint32_t shift = way * 8;
      uint32_t missing = wanted & ~(set.sectors >> shift);
      set.sectors |= wanted << shift;
      if (way != 0) set.promote(way);
      return missing;
    }
    names = _mm_or_si128(_mm_slli_si128(names, 4), _mm_cvtsi32_si128(static_cast<int>(place.name)));
    _mm_storeu_si128(reinterpret_cast<__m128i*>(set.names), names);
    set.sectors = set.sectors << 8 | wanted;
    return wanted;
  }

  void forget() { ++generation_; }

 private:
  struct Set {
    uint32_t names[4] = {};
    uint32_t sectors = 0;  ///< a byte for each way; 0: whatever the name says, nothing is there
    uint32_t generation = 0;

    void promote(unsigned way) {
      std::swap(names[way], names[way - 1]);
      uint32_t shift = way * 8 - 8;
      uint32_t pair = sectors >> shift & 0xffff;
      sectors ^= (pair ^ (pair >> 8 | (pair & 0xff) << 8)) << shift;
    }
  };

  std::vector<Set> sets_;
  uint64_t inverse_ = 0;
  uint32_t generation_ = 1;
};

}  // namespace cb::sim
