#include "simulator/daemon/connection.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "base/check.h"
#include "base/socket.h"

namespace cb::sim {
namespace {

/// Room for one message, and one byte by which a longer one is known.
constexpr size_t kBufferBytes = sizeof(Request) + kMaxPayloadBytes + 1;

/// `passed` gets the descriptor that came along, if one did. There is room for one: the kernel
/// drops others.
ssize_t receive_some(int fd, std::vector<std::byte>& buffer, UniqueFd& passed) {
  iovec part{buffer.data(), buffer.size()};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  ssize_t got;
  do {
    header.msg_control = control;
    header.msg_controllen = CMSG_LEN(sizeof(int));
    got = recvmsg(fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
    // A host that closes with a reply unread resets the connection. The reset is reported once,
    // before what the host had sent until then.
  } while (got < 0 && (errno == EINTR || errno == ECONNRESET));
  if (got < 0) return got;
  const cmsghdr* rights = CMSG_FIRSTHDR(&header);
  if (rights != nullptr && rights->cmsg_level == SOL_SOCKET && rights->cmsg_type == SCM_RIGHTS &&
      rights->cmsg_len == CMSG_LEN(sizeof(int))) {
    int number;
    std::memcpy(&number, CMSG_DATA(rights), sizeof number);
    passed.reset(number);
  }
  return got;
}

}  // namespace

Connection::Connection() {
  auto [ours, theirs] = seqpacket_pair();
  fd_ = std::move(ours);
  host_fd_ = std::move(theirs);
  staging_fd_ = sealed_memfd("staging", kStagingBytes);
  staging_ = SharedMapping(staging_fd_.get(), kStagingBytes);
}

void Connection::drop_host_end() {
  host_fd_.reset();
  staging_fd_.reset();
}

Received Connection::receive(Message& message) {
  thread_local std::vector<std::byte> buffer(kBufferBytes);
  message.fd.reset();
  ssize_t got = receive_some(fd_.get(), buffer, message.fd);
  // Linux looks for the end after it looked for messages, so a goodbye that comes between the two
  // is reported as an end without one. It is there when asked for again.
  if (got == 0) got = receive_some(fd_.get(), buffer, message.fd);
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return Received::kNothing;
  if (got <= 0) return Received::kClosed;
  auto bytes = static_cast<size_t>(got);
  if (bytes < sizeof(Request) || bytes == kBufferBytes) return Received::kMalformed;
  std::memcpy(&message.request, buffer.data(), sizeof(Request));
  if (message.request.payload_bytes != bytes - sizeof(Request)) return Received::kMalformed;
  message.payload.assign(buffer.begin() + sizeof(Request),
                         buffer.begin() + static_cast<ptrdiff_t>(bytes));
  return Received::kMessage;
}

bool Connection::has_input() const {
  pollfd poll_fd{fd_.get(), POLLIN, 0};
  return poll(&poll_fd, 1, 0) > 0;
}

bool Connection::send(const Reply& reply, std::span<const std::byte> payload,
                      std::span<const int> fds) {
  iovec parts[2] = {{const_cast<Reply*>(&reply), sizeof reply},
                    {const_cast<std::byte*>(payload.data()), payload.size()}};
  msghdr header{};
  header.msg_iov = parts;
  header.msg_iovlen = payload.empty() ? 1 : 2;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxReplyFds * sizeof(int))] = {};
  CB_CHECK(fds.size() <= kMaxReplyFds, "more descriptors than a reply carries");
  if (!fds.empty()) {
    header.msg_control = control;
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* rights = CMSG_FIRSTHDR(&header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(fds.size_bytes());
    std::memcpy(CMSG_DATA(rights), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(fd_.get(), &header, MSG_NOSIGNAL | MSG_DONTWAIT);
  } while (sent < 0 && errno == EINTR);
  return sent >= 0;
}

void Connection::close() {
  fd_.reset();
  drop_host_end();
  staging_ = SharedMapping();
}

}  // namespace cb::sim
