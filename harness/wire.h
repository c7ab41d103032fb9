#pragma once

#include <optional>
#include <string>
#include <string_view>

/// Texts of any size between the controller and its ranks, over a SOCK_SEQPACKET connection. Both
/// ends are trusted.
namespace cb::harness {

/// False when the peer is gone. Throws Error(kSystem).
bool send_text(int fd, std::string_view text);
/// Nothing when the peer is gone. Waits at most `timeout_ms` for every piece (-1: for ever) and
/// throws Error(kTimeout) then.
std::optional<std::string> receive_text(int fd, int timeout_ms);

}  // namespace cb::harness
