#pragma once

#include <cstddef>
#include <cstdint>

#include "simulator/protocol/protocol.h"

namespace cb::sim::client {

/// Maps the whole window without access, so that dereferencing a device pointer on the host is a
/// crash. Reports and returns false when that is impossible.
bool reserve_window();

inline bool in_window(uint64_t address) {
  return address >= kWindowBase && address - kWindowBase < kWindowBytes;
}
inline bool in_window(const void* pointer) {
  return in_window(reinterpret_cast<uint64_t>(pointer));
}

/// Maps pinned memory, which the daemon allocated at `address`, over the reservation. Takes `fd`.
/// Returns the bytes mapped, 0 on failure.
size_t map_pinned(uint64_t address, int fd);
/// Puts the reservation back.
void unmap_pinned(uint64_t address, size_t bytes);

}  // namespace cb::sim::client
