#pragma once

#include <stdexcept>
#include <string>
#include <tl/expected.hpp>
#include <utility>

namespace cb {

/// What kind of thing went wrong. The command line maps kinds to exit codes.
enum class ErrorCode {
  kUsage,    ///< the caller asked for something impossible: bad flag, unknown task
  kConfig,   ///< a file of the user's is wrong: task card, profile, manifest
  kSystem,   ///< the operating system refused: errno is in the message
  kRemote,   ///< another process of ours broke the protocol or went away
  kTimeout,  ///< a deadline of ours passed
  kRefused,  ///< doing it would be unsafe, for example without a sandbox
};

/// A short lower-case name, for records and `--json`.
const char* to_string(ErrorCode code);

/// An error as a value or as an exception. A message says what happened, with the values, and
/// where there is one, the next step.
class Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}

  ErrorCode code() const { return code_; }
  std::string message() const { return what(); }

 private:
  ErrorCode code_;
};

/// The outcome of an operation whose failure its caller handles.
template <typename T>
using Result = tl::expected<T, Error>;

/// Shorthand for returning a failure: `return failure(ErrorCode::kConfig, "...")`.
inline tl::unexpected<Error> failure(ErrorCode code, const std::string& message) {
  return tl::unexpected<Error>(Error(code, message));
}

/// An Error of kind kSystem with errno's text: "open /x: No such file or directory".
Error system_error(const std::string& what);
Error system_error(const std::string& what, int errno_value);

/// The value, or throws the error: for callers that cannot go on without it.
template <typename T>
T value_or_throw(Result<T> result) {
  if (!result) throw std::move(result.error());
  return std::move(*result);
}
inline void value_or_throw(Result<void> result) {
  if (!result) throw std::move(result.error());
}

}  // namespace cb
