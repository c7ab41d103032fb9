#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <mutex>
#include <optional>

namespace cb::eval {

/// A queue between the stages of a pipeline. `put` waits while it is full, so that a fast stage
/// does not run away from a slow one.
template <typename T>
class WorkQueue {
 public:
  /// `capacity` 0: without a limit.
  explicit WorkQueue(size_t capacity) : capacity_(capacity) {}

  /// False after close(): the item was not taken.
  bool put(T item) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || capacity_ == 0 || items_.size() < capacity_; });
    if (closed_) return false;
    items_.push_back(std::move(item));
    changed_.notify_all();
    return true;
  }

  /// Before all others, and without waiting: for work that finishes what was begun.
  void put_first(T item) {
    std::lock_guard lock(mutex_);
    if (closed_) return;
    items_.push_front(std::move(item));
    changed_.notify_all();
  }

  /// Nothing when the queue is closed and empty.
  std::optional<T> take() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closed_ || !items_.empty(); });
    if (items_.empty()) return std::nullopt;
    T item = std::move(items_.front());
    items_.pop_front();
    changed_.notify_all();
    return item;
  }

  /// No more items come; those that wait are dropped when `drop` is set.
  void close(bool drop = false) {
    std::lock_guard lock(mutex_);
    closed_ = true;
    if (drop) items_.clear();
    changed_.notify_all();
  }

 private:
  const size_t capacity_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<T> items_;
  bool closed_ = false;
};

}  // namespace cb::eval
