#pragma once

// Which sectors of an access the caches hold.

#include <algorithm>
#include <cstdint>

#include "simulator/exec/context.h"
#include "simulator/timing/line_cache.h"

namespace cb::sim {

inline constexpr unsigned kSectorBits = 5;
inline constexpr uint64_t kSectorBytes = 1 << kSectorBits;
/// Sectors of a line, as a power of two.
inline constexpr unsigned kSectorsBits = LineCache::kLineBits - kSectorBits;
inline constexpr uint64_t kSectorsPerLine = 1 << kSectorsBits;

/// How many bits of a sector mask are set.
inline uint32_t count_of(uint32_t sectors) {
  return uint64_t{0x4332322132212110} >> (sectors * 4) & 7;
}

/// Sectors that were not in the nearer cache.
struct Missing {
  uint64_t in_l1 = 0;
  uint64_t in_l2 = 0;

  void fetch(LineCache* l1, LineCache::Place place, LineCache& l2, LineCache::Place l2_place,
             uint32_t sectors) {
    if (l1 != nullptr) sectors = l1->fetch(place, sectors);
    if (sectors == 0) return;
    in_l1 += count_of(sectors);
    in_l2 += count_of(l2.fetch(l2_place, sectors));
  }
};

/// Of an access with gaps, sectors are taken to lie at equal distances, as they do for a stride.
inline Missing fetch_spread(uint64_t first, uint64_t last, uint64_t count, LineCache* l1,
                            LineCache& l2) {
  Missing missing;
  uint64_t step_q16 = count > 1 ? ((last - first) << 16) / (count - 1) : 0;
  uint64_t line = first >> kSectorsBits;
  uint32_t sectors = 0;
  auto flush = [&] {
    LineCache::Place place;
    if (l1 != nullptr) place = l1->place_of(line);
    missing.fetch(l1, place, l2, l2.place_of(line), sectors);
  };
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t sector = first + ((i * step_q16 + 0x8000) >> 16);
    if (sector >> kSectorsBits != line) {
      flush();
      line = sector >> kSectorsBits;
      sectors = 0;
    }
    sectors |= 1u << (sector & (kSectorsPerLine - 1));
  }
  flush();
  return missing;
}

/// Looks all sectors of an access up in L1, where there is one, and then in L2.
inline Missing fetch_sectors(const MemoryAccess& access, LineCache* l1, LineCache& l2) {
  uint64_t first = access.address >> kSectorBits;
  uint64_t last = (std::max(access.end, access.address + 1) - 1) >> kSectorBits;
  uint64_t count = std::max<uint64_t>(access.sectors, 1);
  if (last - first >= count) return fetch_spread(first, last, count, l1, l2);
  Missing missing;
  uint64_t line = first >> kSectorsBits;
  uint64_t last_line = last >> kSectorsBits;
  uint32_t sectors = 0xfu << (first & (kSectorsPerLine - 1)) & 0xf;
  uint32_t last_sectors = 0xfu >> (kSectorsPerLine - 1 - (last & (kSectorsPerLine - 1)));
  LineCache::Place place;
  if (l1 != nullptr) place = l1->place_of(line);
  LineCache::Place l2_place = l2.place_of(line);
  for (; line < last_line; ++line) {
    missing.fetch(l1, place, l2, l2_place, sectors);
    sectors = 0xf;
    if (l1 != nullptr) l1->advance(place);
    l2.advance(l2_place);
  }
  missing.fetch(l1, place, l2, l2_place, sectors & last_sectors);
  return missing;
}

}  // namespace cb::sim
