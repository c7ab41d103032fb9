#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "sandbox/jail.h"

namespace cb {

/// A bubblewrap command line and the files that it copies into the jail.
struct BoxCommand {
  std::vector<std::string> argv;
  /// Each goes to bubblewrap under the number it has in `argv`, from `kFirstCopyFd` upwards.
  std::vector<UniqueFd> copies;
};

inline constexpr int kFirstCopyFd = 100;

/// Where boxinit appears in every jail.
inline constexpr const char* kBoxinitInside = "/box/boxinit";

/// The user that a jail runs as outside: the box user of the slot when we are root, else ourselves.
std::optional<Credentials> box_credentials(unsigned box_slot);

/// The complete command line for `spec`, which ends in boxinit. `boxinit` is its host path. Throws
/// Error(kRefused) without bubblewrap, Error(kUsage) for a path that cannot be shown.
BoxCommand box_command(const JailSpec& spec, const std::string& boxinit);

}  // namespace cb
