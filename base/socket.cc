#include "base/socket.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>

namespace cb {
namespace {

constexpr size_t kMaxFds = 8;

sockaddr_un address_of(const std::string& path) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (path.size() >= sizeof address.sun_path) {
    throw Error(ErrorCode::kSystem,
                fmt::format("socket path longer than {} bytes: {}; set TMPDIR to a shorter folder",
                            sizeof address.sun_path - 1, path));
  }
  std::memcpy(address.sun_path, path.c_str(), path.size() + 1);
  return address;
}

UniqueFd seqpacket_socket() {
  UniqueFd fd(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (!fd) throw system_error("socket");
  return fd;
}

bool wait_readable(int fd, int timeout_ms) {
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    int left = timeout_ms;
    if (timeout_ms >= 0) {
      auto remaining = deadline - std::chrono::steady_clock::now();
      left = static_cast<int>(std::chrono::ceil<std::chrono::milliseconds>(remaining).count());
      if (left < 0) left = 0;
    }
    pollfd poller{fd, POLLIN, 0};
    int ready = ::poll(&poller, 1, left);
    if (ready > 0) return true;
    if (ready == 0) return false;
    if (errno != EINTR) throw system_error("poll");
  }
}

std::optional<size_t> receive(int fd, msghdr& message, size_t capacity, int timeout_ms) {
  while (true) {
    if (timeout_ms >= 0 && !wait_readable(fd, timeout_ms)) return std::nullopt;
    ssize_t got = ::recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == ECONNRESET || errno == EPIPE)) return 0;
    if (got < 0) throw system_error("recvmsg");
    if ((message.msg_flags & MSG_TRUNC) != 0) {
      throw Error(ErrorCode::kRemote,
                  fmt::format("message larger than the {} bytes the protocol allows", capacity));
    }
    return static_cast<size_t>(got);
  }
}

}  // namespace

std::pair<UniqueFd, UniqueFd> seqpacket_pair() {
  int fds[2];
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
    throw system_error("socketpair");
  }
  return {UniqueFd(fds[0]), UniqueFd(fds[1])};
}

UniqueFd seqpacket_listen(const std::string& path) {
  UniqueFd fd = seqpacket_socket();
  sockaddr_un address = address_of(path);
  if (::bind(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) {
    throw system_error("bind " + path);
  }
  if (::listen(fd.get(), 128) != 0) throw system_error("listen " + path);
  return fd;
}

UniqueFd seqpacket_accept(int listener) {
  while (true) {
    UniqueFd fd(::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC));
    if (fd) return fd;
    if (errno != EINTR) throw system_error("accept");
  }
}

UniqueFd seqpacket_connect(const std::string& path, int timeout_ms) {
  sockaddr_un address = address_of(path);
  auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(timeout_ms);
  while (true) {
    UniqueFd fd = seqpacket_socket();
    if (::connect(fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
    if (errno != ENOENT && errno != ECONNREFUSED && errno != EINTR && errno != EAGAIN) {
      throw system_error("connect " + path);
    }
    if (std::chrono::steady_clock::now() >= deadline) {
      throw Error(ErrorCode::kTimeout,
                  fmt::format("nobody listens on {} after {} ms", path, timeout_ms));
    }
    timespec pause{0, 2'000'000};
    ::nanosleep(&pause, nullptr);
  }
}

bool send_message(int fd, std::span<const std::byte> data, std::span<const int> fds) {
  iovec part{const_cast<std::byte*>(data.data()), data.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))] = {};
  if (!fds.empty()) {
    if (fds.size() > kMaxFds) throw Error(ErrorCode::kRemote, "too many descriptors to send");
    message.msg_control = control;
    message.msg_controllen = CMSG_SPACE(fds.size() * sizeof(int));
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(fds.size() * sizeof(int));
    std::memcpy(CMSG_DATA(header), fds.data(), fds.size() * sizeof(int));
  }
  while (true) {
    if (::sendmsg(fd, &message, MSG_NOSIGNAL) >= 0) return true;
    if (errno == EINTR) continue;
    if (errno == EPIPE || errno == ECONNRESET || errno == ENOTCONN) return false;
    throw system_error("sendmsg");
  }
}

std::optional<size_t> receive_message(int fd, std::span<std::byte> buffer, int timeout_ms) {
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  return receive(fd, message, buffer.size(), timeout_ms);
}

std::optional<size_t> receive_message_with_fds(int fd, std::span<std::byte> buffer,
                                               std::vector<UniqueFd>& fds, size_t max_fds,
                                               int timeout_ms) {
  iovec part{buffer.data(), buffer.size()};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxFds * sizeof(int))];
  message.msg_control = control;
  message.msg_controllen = CMSG_SPACE(std::min(max_fds, kMaxFds) * sizeof(int));
  std::optional<size_t> got = receive(fd, message, buffer.size(), timeout_ms);
  if (!got) return got;
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int received = -1;
      std::memcpy(&received, CMSG_DATA(header) + i * sizeof(int), sizeof(int));
      fds.emplace_back(received);
    }
  }
  return got;
}

}  // namespace cb
