#include "simulator/shims/client/process.h"

#include <pthread.h>
#include <unistd.h>
#include <cstdlib>
#include <cstring>

#include "simulator/shims/client/call.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {

Process process;
// The constructor in load.cc runs before other initialisers of this library.
static_assert((Process(), true), "process must be initialised at compile time");

namespace {

// Smaller values are the default streams.
std::atomic<uint64_t> last_id{15};

/// The value of a variable that holds a descriptor, or -1.
int fd_from_environment(const char* name) {
  const char* text = getenv(name);
  if (text == nullptr || *text == '\0') return -1;
  char* end = nullptr;
  long value = strtol(text, &end, 10);
  return *end == '\0' && value >= 0 && value < 1 << 20 ? static_cast<int>(value) : -1;
}

void after_fork_in_child() {
  if (process.link.load() != Link::kUp) return;
  process.link.store(Link::kForked);
  close_connections_after_fork();
}

}  // namespace

void connect_from_environment() {
  NewConnection connection;
  connection.fd = fd_from_environment(kConnectionFdVariable);
  connection.staging_fd = fd_from_environment(kStagingFdVariable);
  if (connection.fd < 0 || connection.staging_fd < 0) return;
  unsetenv(kConnectionFdVariable);
  unsetenv(kStagingFdVariable);
  if (!reserve_window()) return;
  if (!adopt_connection(connection, &process.hello, process.devices)) return;
  process.link.store(Link::kUp);
  pthread_atfork(nullptr, nullptr, after_fork_in_child);
}

void end_process() {
  if (process.link.load() != Link::kUp) return;
  process.ending.store(true);
  end_connection(true);
  process.link.store(Link::kEnded);
}

void lose_link(const char* reason) {
  if (process.ending.load()) return;
  Link link = process.link.load();
  while (link == Link::kAbsent || link == Link::kUp) {
    if (process.link.compare_exchange_weak(link, Link::kLost)) {
      report("the connection is lost: %s. Every further CUDA call fails with error %d", reason,
             cudaErrorSystemNotReady);
      return;
    }
  }
}

cudaError_t link_error() {
  switch (process.link.load(std::memory_order_acquire)) {
    case Link::kUp:
      break;
    case Link::kAbsent: {
      static std::atomic<bool> said{false};
      if (!said.exchange(true)) {
        report(
            "%s and %s are not set: this program was not started by the simulator, so that it "
            "sees no device",
            kConnectionFdVariable, kStagingFdVariable);
      }
      return cudaErrorNoDevice;
    }
    case Link::kLost:
      return cudaErrorSystemNotReady;
    case Link::kForked:
      return cudaErrorInitializationError;
    case Link::kEnded:
      return cudaErrorCudartUnloading;
  }
  if (this_thread().connected()) return cudaSuccess;
  static std::atomic<bool> said{false};
  if (!said.exchange(true)) {
    report("a thread that was not started through pthread_create, or is ending, uses CUDA");
  }
  return cudaErrorSystemNotReady;
}

uint64_t new_id() { return last_id.fetch_add(1, std::memory_order_relaxed) + 1; }

}  // namespace cb::sim::client
