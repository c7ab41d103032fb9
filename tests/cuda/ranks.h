#pragma once

// Two or more processes that work together. A runner that starts them itself sets COMMBENCH_RANK
// and COMMBENCH_WORLD; the simulator then carries what they exchange. Otherwise the program forks,
// before it uses CUDA, and the processes exchange through pipes.

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

class Ranks {
 public:
  /// Call it first in main.
  explicit Ranks(int world) : world_(world) {
    const char* rank = getenv("COMMBENCH_RANK");
    const char* size = getenv("COMMBENCH_WORLD");
    if (rank != nullptr) {
      rank_ = atoi(rank);
      if (size == nullptr || atoi(size) != world) {
        fprintf(stderr, "this program needs COMMBENCH_WORLD=%d\n", world);
        exit(2);
      }
      gather_ = reinterpret_cast<Gather*>(dlsym(RTLD_DEFAULT, "commbench_sim_allgather"));
      if (gather_ == nullptr) {
        fprintf(stderr, "COMMBENCH_RANK is set, but commbench_sim_allgather is not there\n");
        exit(2);
      }
      exchange_ = reinterpret_cast<Exchange*>(dlsym(RTLD_DEFAULT, "commbench_sim_exchange_fds"));
      return;
    }
    for (int child = 1; child < world; ++child) {
      int pair[2];
      if (socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) exit(2);
      if (fork() == 0) {
        rank_ = child;
        peers_ = {pair[1]};
        return;
      }
      close(pair[1]);
      peers_.push_back(pair[0]);
    }
  }

  int rank() const { return rank_; }
  int world() const { return world_; }

  /// `bytes` of every rank, in the order of ranks.
  void allgather(const void* send, void* receive, size_t bytes) {
    if (gather_ != nullptr) {
      if (gather_(send, receive, bytes, world_) != 0) die("allgather");
      return;
    }
    auto* all = static_cast<char*>(receive);
    if (rank_ == 0) {
      memcpy(all, send, bytes);
      for (int rank = 1; rank < world_; ++rank)
        read_all(peers_[rank - 1], all + rank * bytes, bytes);
      for (int peer : peers_) write_all(peer, all, bytes * world_);
    } else {
      write_all(peers_[0], send, bytes);
      read_all(peers_[0], all, bytes * world_);
    }
  }

  void barrier() {
    char mine = 0;
    std::vector<char> all(world_);
    allgather(&mine, all.data(), 1);
  }

  /// A descriptor of every rank, in the order of ranks; the caller closes them.
  void exchange_fds(int fd, int* received) {
    if (gather_ != nullptr) {
      if (exchange_ == nullptr || exchange_(fd, received, world_) != 0) die("exchange_fds");
      return;
    }
    if (rank_ == 0) {
      received[0] = dup(fd);
      for (int rank = 1; rank < world_; ++rank) received[rank] = receive_fd(peers_[rank - 1]);
      for (int peer : peers_)
        for (int rank = 0; rank < world_; ++rank) send_fd(peer, received[rank]);
    } else {
      send_fd(peers_[0], fd);
      for (int rank = 0; rank < world_; ++rank) received[rank] = receive_fd(peers_[0]);
    }
  }

  /// What main returns: 1 when this rank or, where this process forked them, another one failed.
  int finish(int exit_code) {
    if (gather_ != nullptr || rank_ != 0) return exit_code;
    for (int child = 1; child < world_; ++child) {
      int status = 0;
      wait(&status);
      if (status != 0) exit_code = 1;
    }
    return exit_code;
  }

 private:
  using Gather = int(const void*, void*, size_t, int);
  using Exchange = int(int, int*, int);

  /// One byte with a descriptor.
  struct FdMessage {
    char byte = 0;
    iovec part = {&byte, 1};
    alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
    msghdr header = {};
    FdMessage() {
      header.msg_iov = &part;
      header.msg_iovlen = 1;
      header.msg_control = control;
      header.msg_controllen = sizeof control;
    }
  };
  static void send_fd(int socket, int fd) {
    FdMessage message;
    cmsghdr* rights = CMSG_FIRSTHDR(&message.header);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(sizeof fd);
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    if (sendmsg(socket, &message.header, 0) != 1) die("sendmsg");
  }
  static int receive_fd(int socket) {
    FdMessage message;
    if (recvmsg(socket, &message.header, 0) != 1) die("recvmsg");
    cmsghdr* rights = CMSG_FIRSTHDR(&message.header);
    if (rights == nullptr) die("recvmsg");
    int fd;
    memcpy(&fd, CMSG_DATA(rights), sizeof fd);
    return fd;
  }

  static void die(const char* what) {
    fprintf(stderr, "%s failed: another rank is gone\n", what);
    exit(1);
  }
  static void write_all(int fd, const void* data, size_t bytes) {
    auto* at = static_cast<const char*>(data);
    while (bytes > 0) {
      ssize_t written = write(fd, at, bytes);
      if (written <= 0) die("write");
      at += written;
      bytes -= written;
    }
  }
  static void read_all(int fd, void* data, size_t bytes) {
    auto* at = static_cast<char*>(data);
    while (bytes > 0) {
      ssize_t received = read(fd, at, bytes);
      if (received <= 0) die("read");
      at += received;
      bytes -= received;
    }
  }

  int rank_ = 0;
  int world_;
  std::vector<int> peers_;
  Gather* gather_ = nullptr;
  Exchange* exchange_ = nullptr;
};
