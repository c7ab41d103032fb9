#pragma once

#include <functional>
#include <memory>
#include <string>

#include "search/llm/completion.h"

namespace cb::llm {

/// Something that answers requests. Calls may come from several threads at once.
class Client {
 public:
  virtual ~Client() = default;
  /// Blocks until the answer is there or has failed.
  virtual Completion complete(const Request& request) = 0;
};

/// What ends the reading of an answer early.
struct Limits {
  uint64_t max_reply_bytes = uint64_t{4} << 20;  ///< of the answer's text
  /// Looked at while the answer arrives; true stops it (Finish::kCutOff).
  std::function<bool(const std::string& text)> is_enough;
  double connect_timeout_s = 20;
  double idle_timeout_s = 300;  ///< without a byte; reasoning models think in silence
  double total_timeout_s = 3600;
};

/// Time and randomness, so that tests need neither.
class Clock {
 public:
  virtual ~Clock() = default;
  /// Seconds since some fixed moment.
  virtual double now() = 0;
  virtual void sleep(double seconds) = 0;
  /// Uniform in [0, 1).
  virtual double random() = 0;

  static std::shared_ptr<Clock> system();
};

}  // namespace cb::llm
