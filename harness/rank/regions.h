#pragma once

#include <cstdint>
#include <vector>

#include "tasks/family.h"

/// Arithmetic on byte ranges of one buffer: which bytes are guard zones.
namespace cb::harness {

struct ByteRange {
  uint64_t offset = 0;
  uint64_t bytes = 0;

  uint64_t end() const { return offset + bytes; }
  bool operator==(const ByteRange&) const = default;
};

/// Sorted, without empty or touching ranges.
std::vector<ByteRange> united(std::vector<ByteRange> ranges);
/// What of `from` is in none of `taken`; sorted.
std::vector<ByteRange> subtracted(const std::vector<ByteRange>& from,
                                  const std::vector<ByteRange>& taken);

/// The bytes of a buffer that are poisoned before a step: all of it, or what lies within
/// tasks::kGuardBytes of a region where the buffer is sparse.
std::vector<ByteRange> poisoned(const tasks::BufferSpec& spec,
                                const std::vector<ByteRange>& regions);
/// The poisoned bytes outside of all regions: nobody may write them.
std::vector<ByteRange> guard_zones(const tasks::BufferSpec& spec,
                                   const std::vector<ByteRange>& regions);

}  // namespace cb::harness
