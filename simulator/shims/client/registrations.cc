#include "simulator/shims/client/registrations.h"

#include <sys/mman.h>
#include <unistd.h>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "simulator/shims/client/allocations.h"
#include "simulator/shims/client/call.h"
#include "simulator/shims/client/errors.h"
#include "simulator/shims/client/list.h"
#include "simulator/shims/client/mutex.h"
#include "simulator/shims/client/report.h"
#include "simulator/shims/client/thread.h"
#include "simulator/shims/client/window.h"

namespace cb::sim::client {
namespace {

constexpr uint64_t kPage = 4096;

Mutex mutex;
List<Registration> registrations;
std::atomic<uint32_t> num_registrations{0};

uint64_t page_of(uint64_t address) { return address / kPage * kPage; }
uint64_t page_end(uint64_t end) { return page_of(end + kPage - 1); }
void* to_pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

/// Whether all of [first, last) is private memory that may be read and written: pages shared with
/// another process would stop being so.
cudaError_t check_pages(uint64_t first, uint64_t last) {
  FILE* maps = fopen("/proc/self/maps", "re");
  if (maps == nullptr) {
    report("cudaHostRegister needs /proc/self/maps: %s", strerror(errno));
    return cudaErrorNotSupported;
  }
  char line[512];
  uint64_t covered = first;
  cudaError_t error = cudaSuccess;
  while (covered < last && error == cudaSuccess && fgets(line, sizeof line, maps) != nullptr) {
    unsigned long long from, to;
    char rights[5];
    if (sscanf(line, "%llx-%llx %4s", &from, &to, rights) != 3 || to <= covered) continue;
    if (from > covered) break;
    if (rights[3] != 'p') {
      error = CB_REFUSE("cudaHostRegister of memory that processes share");
    } else if (rights[0] != 'r' || rights[1] != 'w') {
      error = cudaErrorInvalidValue;
    }
    covered = to;
  }
  fclose(maps);
  return error == cudaSuccess && covered < last ? cudaErrorInvalidValue : error;
}

/// Puts other pages with the same content at [first, last): those of `fd`, or fresh private ones
/// (-1). False: the kernel has no room.
bool replace_pages(uint64_t first, uint64_t last, int fd) {
  size_t bytes = last - first;
  int flags = fd < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* fresh = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, fd, 0);
  if (fresh == MAP_FAILED) return false;
  memcpy(fresh, to_pointer(first), bytes);
  if (mremap(fresh, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, to_pointer(first)) != MAP_FAILED) {
    return true;
  }
  munmap(fresh, bytes);
  return false;
}

bool overlaps(uint64_t first, uint64_t last) {
  for (size_t at = 0; at < registrations.size(); ++at) {
    const Registration& one = registrations[at];
    if (page_of(one.host) < last && page_end(one.host + one.bytes) > first) return true;
  }
  return false;
}

void restore_pages(const Registration& one) {
  uint64_t first = page_of(one.host), last = page_end(one.host + one.bytes);
  if (!replace_pages(first, last, -1)) report("cannot give registered pages back");
}

}  // namespace

cudaError_t register_host(void* pointer, size_t bytes, unsigned flags) {
  constexpr unsigned kKnown = cudaHostRegisterPortable | cudaHostRegisterMapped |
                              cudaHostRegisterIoMemory | cudaHostRegisterReadOnly;
  auto address = reinterpret_cast<uint64_t>(pointer);
  if (pointer == nullptr || bytes == 0 || (flags & ~kKnown) != 0 || address + bytes < address) {
    return cudaErrorInvalidValue;
  }
  if ((flags & cudaHostRegisterIoMemory) != 0) return CB_REFUSE("cudaHostRegisterIoMemory");
  // As cudaDevAttrHostRegisterReadOnlySupported says.
  if ((flags & cudaHostRegisterReadOnly) != 0) return cudaErrorNotSupported;
  if (in_window(address)) return cudaErrorHostMemoryAlreadyRegistered;
  uint64_t first = page_of(address), last = page_end(address + bytes);
  auto frame = reinterpret_cast<uint64_t>(__builtin_frame_address(0));
  if (frame + kPage >= first && frame < last + kPage) {
    return CB_REFUSE("cudaHostRegister of the stack's active pages");
  }
  int device = this_thread().device();
  LockAcrossCalls lock(mutex);
  if (overlaps(first, last)) return cudaErrorHostMemoryAlreadyRegistered;
  cudaError_t error = check_pages(first, last);
  if (error != cudaSuccess) return error;
  int fd;
  Call call(Op::kHostAlloc);
  call.args(address + bytes - first, flags & (cudaHostAllocPortable | cudaHostAllocMapped), device)
      .receive_fds(&fd, 1);
  error = call.wait();
  if (error != cudaSuccess) return error;
  bool replaced = fd >= 0 && replace_pages(first, last, fd);
  if (fd >= 0) close(fd);
  Registration made;
  made.host = address;
  made.bytes = bytes;
  made.alias = call.result(0) + (address - first);
  made.device = device;
  made.flags = flags;
  if (!replaced || !registrations.push(made)) {
    if (replaced) restore_pages(made);
    Call(Op::kHostFree).args(call.result(0)).wait();
    return cudaErrorMemoryAllocation;
  }
  ++num_registrations;
  Allocation allocation;
  allocation.base = call.result(0);
  allocation.bytes = address + bytes - first;
  allocation.device = device;
  allocation.flags = flags;
  allocation.kind = AllocationKind::kRegistered;
  add_allocation(allocation);
  return cudaSuccess;
}

cudaError_t unregister_host(void* pointer) {
  auto address = reinterpret_cast<uint64_t>(pointer);
  LockAcrossCalls lock(mutex);
  for (size_t at = 0; at < registrations.size(); ++at) {
    Registration one = registrations[at];
    if (one.host != address) continue;
    uint64_t base = one.alias - (one.host - page_of(one.host));
    // Waits for the device, which writes to the pages until then.
    cudaError_t error = Call(Op::kHostFree).args(base).wait();
    if (error != cudaSuccess) return error;
    restore_pages(one);
    Allocation known;
    remove_allocation(base, &known);
    registrations.erase(at);
    --num_registrations;
    return cudaSuccess;
  }
  return pointer == nullptr ? cudaErrorInvalidValue : cudaErrorHostMemoryNotRegistered;
}

bool find_registration(const void* pointer, Registration* found) {
  if (num_registrations.load(std::memory_order_acquire) == 0) return false;
  auto address = reinterpret_cast<uint64_t>(pointer);
  LockAcrossCalls lock(mutex);
  for (size_t at = 0; at < registrations.size(); ++at) {
    if (address - registrations[at].host >= registrations[at].bytes) continue;
    *found = registrations[at];
    return true;
  }
  return false;
}

bool find_registration_of_alias(uint64_t alias, Registration* found) {
  if (num_registrations.load(std::memory_order_acquire) == 0) return false;
  LockAcrossCalls lock(mutex);
  for (size_t at = 0; at < registrations.size(); ++at) {
    if (alias - registrations[at].alias >= registrations[at].bytes) continue;
    *found = registrations[at];
    return true;
  }
  return false;
}

const void* known_to_devices(const void* pointer, uint64_t bytes) {
  Registration found;
  if (in_window(pointer) || !find_registration(pointer, &found)) return pointer;
  auto address = reinterpret_cast<uint64_t>(pointer);
  if (bytes > found.host + found.bytes - address) return pointer;
  return to_pointer(found.alias_of(address));
}

void remove_registrations_of(int device) {
  LockAcrossCalls lock(mutex);
  for (size_t at = registrations.size(); at-- > 0;) {
    if (registrations[at].device != device) continue;
    restore_pages(registrations[at]);
    registrations.erase(at);
    --num_registrations;
  }
}

}  // namespace cb::sim::client
