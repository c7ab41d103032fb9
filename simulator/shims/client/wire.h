#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/protocol/protocol.h"

namespace cb::sim::client {

struct Bytes {
  const void* data = nullptr;
  size_t size = 0;
};

/// Sends one message made of `request`, two payload parts and a descriptor (-1: none). False when
/// the daemon is gone.
bool send_request(int fd, const Request& request, Bytes first, Bytes second, int passed_fd = -1);

/// Receives one reply with at most `payload_capacity` bytes of payload and `max_fds` (<=
/// kMaxReplyFds) descriptors; missing ones stay -1. nullptr, or why the connection is unusable.
const char* receive_reply(int fd, Reply* reply, void* payload, size_t payload_capacity, int* fds,
                          int max_fds);

}  // namespace cb::sim::client
