#pragma once

// The asynchronous copies of a thread, by groups in the order in which they were committed. Since
// the virtual time of completion is known when a copy starts, a group is a time.

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "simulator/exec/micro_op.h"

namespace cb::sim {

class CopyGroups {
 public:
  struct Times {
    Time read = 0;  ///< the sources may be overwritten
    Time done = 0;
  };

  void add(Times times) { open_ = later(open_, times); }
  /// `now` bounds what must be remembered: groups that are complete cost nothing.
  void commit(Time now) {
    Times all = later(committed_, open_);
    ++count_;
    open_ = {};
    bool same = all.done == committed_.done && all.read == committed_.read;
    committed_ = all;
    if (!same || ends_.empty()) {
      ends_.push_back({count_, count_, all});
    } else {
      ends_.back().last = count_;
    }
    auto first = std::find_if(ends_.begin(), ends_.end(), [&](const End& end) {
      return end.times.done > now || end.times.read > now;
    });
    ends_.erase(ends_.begin(), first);
  }
  /// When all groups but the last `allowed` are complete.
  Times all_but(uint64_t allowed) const {
    if (allowed >= count_) return {};
    uint64_t wanted = count_ - allowed;
    for (const End& end : ends_) {
      if (wanted <= end.last) return wanted >= end.first ? end.times : Times{};
    }
    return {};
  }
  /// Committed or not.
  Times all() const { return later(committed_, open_); }

 private:
  /// Groups with the numbers `first` to `last` are complete at `times`, which never decrease; those
  /// that no entry has are complete.
  struct End {
    uint64_t first, last;
    Times times;
  };
  static Times later(Times a, Times b) {
    return {std::max(a.read, b.read), std::max(a.done, b.done)};
  }

  Times open_;
  Times committed_;
  uint64_t count_ = 0;
  std::vector<End> ends_;
};

/// Of the lanes of a warp.
struct WarpCopies {
  std::array<CopyGroups, kLanes> async;
  std::array<CopyGroups, kLanes> bulk;
};

}  // namespace cb::sim
