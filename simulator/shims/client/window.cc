#include "simulator/shims/client/window.h"

#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>

#include "simulator/shims/client/report.h"

namespace cb::sim::client {
namespace {

constexpr int kReservation = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;

void* pointer_to(uint64_t address) { return reinterpret_cast<void*>(address); }

}  // namespace

bool reserve_window() {
  void* wanted = pointer_to(kWindowBase);
  void* got = mmap(wanted, kWindowBytes, PROT_NONE, kReservation | MAP_FIXED_NOREPLACE, -1, 0);
  if (got == wanted) return true;
  const char* reason = got == MAP_FAILED ? strerror(errno) : "the kernel chose another place";
  if (got != MAP_FAILED) munmap(got, kWindowBytes);
  report(
      "cannot reserve the address window [%p, +%llu): %s. Raise the address space limit "
      "(ulimit -v), or free the range",
      wanted, static_cast<unsigned long long>(kWindowBytes), reason);
  return false;
}

size_t map_pinned(uint64_t address, int fd) {
  struct stat status;
  bool known = fstat(fd, &status) == 0 && status.st_size > 0 && in_window(address) &&
               static_cast<uint64_t>(status.st_size) <= kWindowBase + kWindowBytes - address;
  auto bytes = known ? static_cast<size_t>(status.st_size) : 0;
  if (known && mmap(pointer_to(address), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd,
                    0) == MAP_FAILED) {
    report("cannot map %zu bytes of pinned memory: %s", bytes, strerror(errno));
    bytes = 0;
  }
  close(fd);
  return bytes;
}

void unmap_pinned(uint64_t address, size_t bytes) {
  (void)mmap(pointer_to(address), bytes, PROT_NONE, kReservation | MAP_FIXED, -1, 0);
}

}  // namespace cb::sim::client
