#pragma once

// The daemon's end of one host thread's connection. What arrives is hostile: a message is copied
// out of the socket once, and only its frame is checked here.

#include <cstddef>
#include <span>
#include <vector>

#include "base/fd.h"
#include "simulator/protocol/protocol.h"

namespace cb::sim {

/// A request as it arrived, with payload.
struct Message {
  Request request;
  std::vector<std::byte> payload;
  UniqueFd fd;  ///< that came along; the first one
};

enum class Received { kMessage, kNothing, kClosed, kMalformed };

class Connection {
 public:
  /// Makes the pair and the staging memory. Throws Error(kSystem).
  Connection();

  int fd() const { return fd_.get(); }
  /// The host's ends, to be sent or inherited; gone after `take_` or `drop_host_end`.
  int host_fd() const { return host_fd_.get(); }
  int staging_fd() const { return staging_fd_.get(); }
  void drop_host_end();

  std::byte* staging() const { return staging_.data(); }

  /// Takes the next message, without waiting.
  Received receive(Message& message);
  /// Whether bytes are waiting or the peer is gone.
  bool has_input() const;
  /// False when the host is gone, or does not take its replies.
  bool send(const Reply& reply, std::span<const std::byte> payload, std::span<const int> fds);
  void close();
  bool is_open() const { return static_cast<bool>(fd_); }

 private:
  UniqueFd fd_, host_fd_, staging_fd_;
  SharedMapping staging_;
};

}  // namespace cb::sim
