#include "simulator/memory/pages.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstring>

#include "base/error.h"
#include "base/random.h"
#include "simulator/protocol/protocol.h"

namespace cb::sim {
namespace {

constexpr uint64_t kPageBytes = 4096;
constexpr uint32_t kMaxSpecial = 16384;

void* pointer(uint64_t address) { return reinterpret_cast<void*>(address); }

/// Writable from the start, so that the window is one mapping however many allocations it holds.
/// Small buffers would waste most of a huge page, and a core dump would be as large as the window.
bool map_plain(uint64_t base, uint64_t bytes, int placement) {
  void* mapped = mmap(pointer(base), bytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | placement, -1, 0);
  if (mapped == MAP_FAILED) return false;
  madvise(mapped, bytes, MADV_NOHUGEPAGE);
  madvise(mapped, bytes, MADV_DONTDUMP);
  return true;
}

}  // namespace

WindowPages::WindowPages() {
  if (map_plain(kWindowBase, kWindowBytes, MAP_FIXED_NOREPLACE)) return;
  throw system_error(
      "reserve 4 TiB of addresses for device memory, which need no memory but must not be limited "
      "by ulimit -v, ulimit -d or vm.overcommit_memory=2");
}

WindowPages::~WindowPages() { munmap(pointer(kWindowBase), kWindowBytes); }

void WindowPages::prefer_huge(uint64_t base, uint64_t bytes) {
  ++num_special_;
  if (num_special_ <= kMaxSpecial) madvise(pointer(base), bytes, MADV_HUGEPAGE);
}

bool WindowPages::map_file(uint64_t base, uint64_t bytes, int fd) {
  if (num_special_ >= kMaxSpecial) return false;
  void* mapped = mmap(pointer(base), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0);
  if (mapped == MAP_FAILED) return false;
  ++num_special_;
  return true;
}

bool WindowPages::map_shared(uint64_t base, uint64_t bytes) {
  if (num_special_ >= kMaxSpecial) return false;
  void* mapped = mmap(pointer(base), bytes, PROT_READ | PROT_WRITE,
                      MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  if (mapped == MAP_FAILED) return false;
  madvise(mapped, bytes, MADV_DONTDUMP);
  ++num_special_;
  return true;
}

bool WindowPages::alias(uint64_t base, uint64_t bytes, uint64_t from) {
  if (num_special_ >= kMaxSpecial) return false;
  // An old size of 0 asks for a second mapping of shared pages.
  void* mapped = mremap(pointer(from), 0, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, pointer(base));
  if (mapped == MAP_FAILED) return false;
  ++num_special_;
  return true;
}

void WindowPages::discard(uint64_t base, uint64_t bytes, bool special) {
  if (special) {
    // A new mapping with the window's own attributes merges with what is around it.
    if (!map_plain(base, bytes, MAP_FIXED)) throw system_error("return pages of device memory");
    --num_special_;
    return;
  }
  uint64_t first = base / kPageBytes * kPageBytes;
  uint64_t last = (base + bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
  if (last > first) madvise(pointer(first), last - first, MADV_DONTNEED);
}

ResidentMeter::ResidentMeter() : statm_(::open("/proc/self/statm", O_RDONLY | O_CLOEXEC)) {}

uint64_t ResidentMeter::bytes() const {
  char text[128];
  ssize_t got = statm_ ? ::pread(statm_.get(), text, sizeof text, 0) : -1;
  if (got > 0) {
    const char* begin = text;
    const char* end = text + got;
    const char* second = std::find(begin, end, ' ') + 1;
    uint64_t pages = 0;
    if (second < end && std::from_chars(second, end, pages).ec == std::errc{}) {
      return pages * kPageBytes;
    }
  }
  // Without /proc, the most that was ever resident bounds what is.
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<uint64_t>(usage.ru_maxrss) << 10;
}

void fill_garbage(uint64_t base, uint64_t bytes) {
  CounterRandom random(base);
  for (uint64_t at = 0; at < bytes; at += 8) {
    uint64_t word = random.value(at);
    std::memcpy(pointer(base + at), &word, std::min<uint64_t>(8, bytes - at));
  }
}

}  // namespace cb::sim
