#pragma once

// The host's pages behind the window of device addresses.

#include <cstdint>

#include "base/fd.h"

namespace cb::sim {

/// The reserved window. It costs nothing until it is touched, and reads as zero then.
class WindowPages {
 public:
  /// Reserves kWindowBytes at kWindowBase. Throws Error(kSystem).
  WindowPages();
  ~WindowPages();
  WindowPages(const WindowPages&) = delete;
  WindowPages& operator=(const WindowPages&) = delete;

  /// Asks for huge pages in [base, base + bytes), both multiples of a page. Nothing happens when
  /// the kernel's table of mappings is too full; that costs speed only.
  void prefer_huge(uint64_t base, uint64_t bytes);
  /// Puts the file's pages there. False: no room in the kernel's table of mappings.
  bool map_file(uint64_t base, uint64_t bytes, int fd);
  /// Puts fresh pages there, which `alias` can show elsewhere, too. False as for map_file.
  bool map_shared(uint64_t base, uint64_t bytes);
  /// Shows the pages of [from, from + bytes), which map_shared made, at `base`, too. False as for
  /// map_file.
  bool alias(uint64_t base, uint64_t bytes, uint64_t from);
  /// Gives the pages of [base, base + bytes) back, which read as zero again; nothing else may lie
  /// in them. `special`: as one of the calls above made it.
  void discard(uint64_t base, uint64_t bytes, bool special);

 private:
  /// Mappings that differ from their surroundings: each costs up to two entries in a table that
  /// Linux bounds at 65530 for the whole process.
  uint32_t num_special_ = 0;
};

/// Memory that this process really occupies, in bytes.
class ResidentMeter {
 public:
  ResidentMeter();
  uint64_t bytes() const;

 private:
  UniqueFd statm_;
};

/// Fills [base, base + bytes) with bytes that are the same whenever the address is.
void fill_garbage(uint64_t base, uint64_t bytes);

}  // namespace cb::sim
