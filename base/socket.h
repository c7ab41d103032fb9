#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/fd.h"

namespace cb {

/// A connected pair of AF_UNIX SOCK_SEQPACKET sockets, close-on-exec. Throws Error(kSystem).
std::pair<UniqueFd, UniqueFd> seqpacket_pair();

/// Listens on a filesystem path; the folder must be private. Throws Error(kSystem).
UniqueFd seqpacket_listen(const std::string& path);
/// Accepts one connection, close-on-exec. Throws Error(kSystem).
UniqueFd seqpacket_accept(int listener);
/// Connects, retrying while the listener is not there yet. Throws Error(kTimeout).
UniqueFd seqpacket_connect(const std::string& path, int timeout_ms);

/// Sends one message of `data`, with descriptors when `fds` is not empty. Returns false when the
/// peer is gone; throws Error(kSystem) otherwise.
bool send_message(int fd, std::span<const std::byte> data, std::span<const int> fds = {});

/// Receives one message into `buffer`: its size, 0 for a closed connection, nothing when
/// `timeout_ms` (-1 waits for ever) passed. A message larger than `buffer` is an
/// Error(kRemote). Descriptors sent along are refused by the kernel: no control buffer is given,
/// so an untrusted sender cannot fill our table.
std::optional<size_t> receive_message(int fd, std::span<std::byte> buffer, int timeout_ms = -1);

/// As `receive_message`, from a trusted sender, taking up to `max_fds` descriptors.
std::optional<size_t> receive_message_with_fds(int fd, std::span<std::byte> buffer,
                                               std::vector<UniqueFd>& fds, size_t max_fds,
                                               int timeout_ms = -1);

}  // namespace cb
