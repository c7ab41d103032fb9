#include "search/eval/concurrency.h"

#include <algorithm>

namespace cb::eval {

bool ConcurrencyLimit::acquire() {
  std::unique_lock lock(mutex_);
  has_turn_.wait(lock, [this] { return stopped_ || in_use_ < limit_; });
  if (stopped_) return false;
  ++in_use_;
  return true;
}

void ConcurrencyLimit::release(bool put_off) {
  std::lock_guard lock(mutex_);
  --in_use_;
  if (put_off) {
    limit_ = std::max<size_t>(1, limit_ / 2);
    answered_ = 0;
  } else if (++answered_ >= limit_) {
    limit_ = std::min(most_, limit_ + 1);
    answered_ = 0;
  }
  has_turn_.notify_all();
}

void ConcurrencyLimit::stop() {
  std::lock_guard lock(mutex_);
  stopped_ = true;
  has_turn_.notify_all();
}

size_t ConcurrencyLimit::limit() const {
  std::lock_guard lock(mutex_);
  return limit_;
}

}  // namespace cb::eval
