#include "harness/rank/regions.h"

#include <algorithm>

#include "tasks/poison.h"

namespace cb::harness {

std::vector<ByteRange> united(std::vector<ByteRange> ranges) {
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.offset < b.offset; });
  std::vector<ByteRange> result;
  for (const ByteRange& range : ranges) {
    if (range.bytes == 0) continue;
    if (!result.empty() && range.offset <= result.back().end()) {
      uint64_t end = std::max(result.back().end(), range.end());
      result.back().bytes = end - result.back().offset;
    } else {
      result.push_back(range);
    }
  }
  return result;
}

std::vector<ByteRange> subtracted(const std::vector<ByteRange>& from,
                                  const std::vector<ByteRange>& taken) {
  std::vector<ByteRange> holes = united(taken);
  std::vector<ByteRange> result;
  for (const ByteRange& range : united(from)) {
    uint64_t at = range.offset;
    for (const ByteRange& hole : holes) {
      if (hole.end() <= at || hole.offset >= range.end()) continue;
      if (hole.offset > at) result.push_back({at, hole.offset - at});
      at = std::max(at, hole.end());
    }
    if (at < range.end()) result.push_back({at, range.end() - at});
  }
  return result;
}

std::vector<ByteRange> poisoned(const tasks::BufferSpec& spec,
                                const std::vector<ByteRange>& regions) {
  if (!spec.sparse) return united({{0, spec.bytes}});
  std::vector<ByteRange> near;
  for (const ByteRange& region : regions) {
    uint64_t begin = region.offset - std::min(region.offset, tasks::kGuardBytes);
    uint64_t end = std::min(spec.bytes, region.end() + tasks::kGuardBytes);
    near.push_back({begin, end - begin});
  }
  return united(std::move(near));
}

std::vector<ByteRange> guard_zones(const tasks::BufferSpec& spec,
                                   const std::vector<ByteRange>& regions) {
  return subtracted(poisoned(spec, regions), regions);
}

}  // namespace cb::harness
