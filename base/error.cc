#include "base/error.h"

#include <cerrno>
#include <cstring>

namespace cb {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::kUsage:
      return "usage";
    case ErrorCode::kConfig:
      return "config";
    case ErrorCode::kSystem:
      return "system";
    case ErrorCode::kRemote:
      return "remote";
    case ErrorCode::kTimeout:
      return "timeout";
    case ErrorCode::kRefused:
      return "refused";
  }
  return "unknown";
}

Error system_error(const std::string& what, int errno_value) {
  return Error(ErrorCode::kSystem, what + ": " + std::strerror(errno_value));
}

Error system_error(const std::string& what) { return system_error(what, errno); }

}  // namespace cb
