#include <cstddef>
#include <cstdint>
#include <span>

#include "simulator/ptx/cubin.h"
#include "simulator/ptx/fatbin.h"

/// libFuzzer entry: any bytes give entries or an error, as a fat binary and as a cubin, and what is
/// in the entries is read in turn.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer looks for this name.
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t count) {
  std::span<const std::byte> bytes(reinterpret_cast<const std::byte*>(data), count);
  cb::ptx::read_cubin_resources(bytes);
  cb::Result<cb::ptx::Fatbin> fatbin = cb::ptx::read_fatbin(bytes, 1 << 20);
  if (!fatbin) return 0;
  cb::ptx::select_ptx(*fatbin, 90);
  for (const cb::ptx::FatbinEntry& entry : fatbin->entries) {
    cb::ptx::read_cubin_resources(std::as_bytes(std::span(entry.content)));
  }
  return 0;
}
