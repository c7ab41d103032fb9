#include "simulator/shims/client/thread.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstring>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/process.h"
#include "simulator/shims/client/report.h"

namespace cb::sim::client {
namespace {

thread_local Thread current;

/// Descriptors of all connections plus one, 0 where free. A thread beyond the table's size only
/// misses being closed after a fork.
constexpr int kMaxTracked = 4096;
std::atomic<int> tracked[kMaxTracked];

void track(int fd) {
  for (auto& entry : tracked) {
    int expected = 0;
    if (entry.load() == 0 && entry.compare_exchange_strong(expected, fd + 1)) return;
  }
}

void close_tracked(int fd) {
  for (auto& entry : tracked) {
    int expected = fd + 1;
    if (entry.load() == expected && entry.compare_exchange_strong(expected, 0)) break;
  }
  close(fd);
}

uint8_t* map_staging(int fd) {
  void* memory = mmap(nullptr, kStagingBytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  return memory == MAP_FAILED ? nullptr : static_cast<uint8_t*>(memory);
}

bool say_hello(Thread& thread, HelloReply* hello, DeviceInfo* devices) {
  struct {
    HelloReply hello;
    DeviceInfo devices[kMaxDevices];
  } reply;
  Call call(thread, Op::kHello, 0);
  call.args(kProtocolVersion, syscall(SYS_gettid)).receive(&reply, sizeof reply);
  if (!call.wait_raw()) return false;
  if (call.status() != cudaSuccess) {
    lose_link("the simulator refused the connection");
    return false;
  }
  size_t expected = sizeof(HelloReply) + reply.hello.num_devices * sizeof(DeviceInfo);
  if (reply.hello.version != kProtocolVersion || reply.hello.num_devices > kMaxDevices ||
      call.received_bytes() != expected) {
    lose_link("its greeting is of another version; use libraries and simulator of one build");
    return false;
  }
  thread.id = reply.hello.thread_id;
  *hello = reply.hello;
  if (devices != nullptr) {
    memcpy(devices, reply.devices, reply.hello.num_devices * sizeof(DeviceInfo));
  }
  return true;
}

}  // namespace

Thread& this_thread() { return current; }

void Thread::set_context(int context) {
  if (num_contexts == 0) num_contexts = 1;
  contexts[num_contexts - 1] = context;
}

cudaError_t request_connection(NewConnection* connection) {
  int fds[2];
  Call call(Op::kThreadNew);
  call.receive_fds(fds, 2);
  cudaError_t error = call.wait();
  if (error != cudaSuccess) return error;
  if (fds[0] < 0 || fds[1] < 0) {
    lose_link("it sent no descriptors for a new thread");
    return cudaErrorSystemNotReady;
  }
  connection->thread_id = static_cast<uint32_t>(call.result(0));
  connection->fd = fds[0];
  connection->staging_fd = fds[1];
  return cudaSuccess;
}

bool adopt_connection(const NewConnection& connection, HelloReply* hello, DeviceInfo* devices) {
  // A program that the candidate starts must not hold the connection open.
  fcntl(connection.fd, F_SETFD, FD_CLOEXEC);
  current.staging = map_staging(connection.staging_fd);
  close(connection.staging_fd);
  if (current.staging == nullptr) {
    report("cannot map %llu bytes of staging memory: %s",
           static_cast<unsigned long long>(kStagingBytes), strerror(errno));
    close(connection.fd);
    return false;
  }
  current.fd = connection.fd;
  current.sequence = 0;
  track(current.fd);
  if (say_hello(current, hello, devices)) return true;
  close_tracked(current.fd);
  munmap(current.staging, kStagingBytes);
  current.fd = -1;
  current.staging = nullptr;
  return false;
}

void end_connection(bool whole_process) {
  if (!current.connected()) return;
  Call(Op::kBye).args(whole_process ? 1 : 0).send();
  close_tracked(current.fd);
  munmap(current.staging, kStagingBytes);
  current.fd = -1;
  current.staging = nullptr;
}

void close_connections_after_fork() {
  for (auto& entry : tracked) {
    int fd = entry.exchange(0);
    if (fd > 0) close(fd - 1);
  }
  current.fd = -1;
  current.busy = false;
}

void abandon_connection(const NewConnection& connection) {
  Thread ghost;
  ghost.fd = connection.fd;
  HelloReply hello;
  if (say_hello(ghost, &hello, nullptr)) Call(ghost, Op::kBye, 0).send();
  close(connection.fd);
  close(connection.staging_fd);
}

}  // namespace cb::sim::client
