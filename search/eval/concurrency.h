#pragma once

#include <condition_variable>
#include <cstddef>
#include <mutex>

namespace cb::eval {

/// How many requests are under way at a time: as many as the provider takes. Starts low, grows by
/// one for each full round of answers that nobody put off, and is halved when one was (additive
/// increase, multiplicative decrease; Chiu and Jain 1989).
class ConcurrencyLimit {
 public:
  ConcurrencyLimit(size_t start, size_t most) : limit_(start), most_(most) {}

  /// Waits for a turn; false after stop().
  bool acquire();
  /// `put_off`: the provider said that it was too much.
  void release(bool put_off);
  /// Wakes who waits.
  void stop();
  size_t limit() const;

 private:
  mutable std::mutex mutex_;
  std::condition_variable has_turn_;
  size_t limit_;
  size_t most_;
  size_t in_use_ = 0;
  size_t answered_ = 0;  ///< since the limit changed
  bool stopped_ = false;
};

}  // namespace cb::eval
