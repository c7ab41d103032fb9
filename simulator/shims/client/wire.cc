#include "simulator/shims/client/wire.h"

#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

namespace cb::sim::client {
namespace {

// Plain system calls instead of sendmsg() and recvmsg(): those are cancellation points, and a
// thread cancelled between request and reply would leave its connection out of step.
ssize_t system_sendmsg(int fd, const msghdr* message, int flags) {
  return syscall(SYS_sendmsg, fd, message, flags);
}
ssize_t system_recvmsg(int fd, msghdr* message, int flags) {
  return syscall(SYS_recvmsg, fd, message, flags);
}

}  // namespace

bool send_request(int fd, const Request& request, Bytes first, Bytes second, int passed_fd) {
  iovec parts[3] = {{const_cast<Request*>(&request), sizeof request},
                    {const_cast<void*>(first.data), first.size},
                    {const_cast<void*>(second.data), second.size}};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 3;
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  if (passed_fd >= 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
    cmsghdr* rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(rights), &passed_fd, sizeof passed_fd);
  }
  ssize_t sent;
  do {
    sent = system_sendmsg(fd, &message, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(sizeof request + first.size + second.size);
}

const char* receive_reply(int fd, Reply* reply, void* payload, size_t payload_capacity, int* fds,
                          int max_fds) {
  iovec parts[2] = {{reply, sizeof *reply}, {payload, payload_capacity}};
  alignas(cmsghdr) char control[CMSG_SPACE(kMaxReplyFds * sizeof(int))] = {};
  msghdr message = {};
  message.msg_iov = parts;
  message.msg_iovlen = 2;
  if (max_fds > 0) {
    message.msg_control = control;
    message.msg_controllen = sizeof control;
  }
  ssize_t received;
  do {
    received = system_recvmsg(fd, &message, MSG_CMSG_CLOEXEC);
  } while (received < 0 && errno == EINTR);
  if (received == 0) return "the simulator closed it";
  if (received < 0) return errno == ECONNRESET ? "the simulator closed it" : strerror(errno);

  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t at = 0; at < count; ++at) {
      int passed;
      memcpy(&passed, CMSG_DATA(header) + at * sizeof(int), sizeof passed);
      if (static_cast<int>(at) < max_fds) {
        fds[at] = passed;
      } else {
        close(passed);
      }
    }
  }
  if (message.msg_flags & MSG_TRUNC) return "a reply is longer than its request allows";
  if (received < static_cast<ssize_t>(sizeof *reply)) return "a reply is too short";
  if (reply->payload_bytes != received - sizeof *reply) {
    return "a reply's payload has another size than it says";
  }
  return nullptr;
}

}  // namespace cb::sim::client
